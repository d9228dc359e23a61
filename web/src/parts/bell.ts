// What one asked to be told: that a card is free, that a batch has ended. By the browser's own notification, while this page
// is open somewhere; its stream then stays open in a hidden tab, too.
import i18next from 'i18next'
import { useSyncExternalStore } from 'react'
import { get } from '../api/call'
import { live } from '../api/live'
import type { Ps } from '../api/types'
import { FINAL } from '../model/jobs'
import { isFree, ownNames } from '../model/people'
import { say } from './toast'

const cards = new Set<string>()
const batches = new Set<number>()
const listeners = new Set<() => void>()
let version = 0

function changed(): void {
  version += 1
  for (const listener of listeners) listener()
}

/** Draws again when something is asked for, or was told. */
export const useWatched = (): number =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => version,
  )

export const isWatched = (uuid: string): boolean => cards.has(uuid)
export const isBatchWatched = (batch: number): boolean => batches.has(batch)

/** Whether somebody waits to be told something. */
export const isWatching = (): boolean => cards.size + batches.size > 0

async function toggle<T>(asked: Set<T>, one: T): Promise<void> {
  if (!asked.delete(one)) {
    if (typeof Notification !== 'undefined' && Notification.permission === 'default') await Notification.requestPermission()
    asked.add(one)
  }
  changed()
}

export const watchCard = (uuid: string): Promise<void> => toggle(cards, uuid)
export const watchBatch = (batch: number): Promise<void> => toggle(batches, batch)

function notify(text: string): void {
  say({ text })
  if (typeof Notification !== 'undefined' && Notification.permission === 'granted')
    new Notification('jostle', { body: text, tag: text })
  changed()
}

live.subscribe(() => {
  const gpus = live.picture.cards?.gpus
  if (!gpus || cards.size === 0) return
  const own = ownNames(gpus)
  for (const card of gpus) {
    if (isFree(card, own) && cards.delete(card.uuid)) notify(i18next.t('card.isfree', { index: card.index }))
  }
})

live.hear({
  event: (event) => {
    if (event.batch !== null && batches.has(event.batch) && FINAL.has(event.kind)) void lookAtBatch(event.batch)
  },
  behind: () => {
    for (const batch of batches) void lookAtBatch(batch)
  },
})

async function lookAtBatch(batch: number): Promise<void> {
  const { jobs } = await get<Ps>('/api/v1/ps', { batch, all: true })
  if (!jobs.every((job) => FINAL.has(job.state)) || !batches.delete(batch)) return
  const failed = jobs.filter((job) => job.state === 'failed').length
  notify(i18next.t(failed ? 'jobs.endedbadly' : 'jobs.ended', { batch, count: jobs.length, failed }))
}
