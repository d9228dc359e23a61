// What this person has seen: all failures until they said so, and single ones after it. Kept in this browser, shared by its tabs.
import { useSyncExternalStore } from 'react'
import type { Seen } from './model/jobs'

const SAID = 'jostle.looked'
const SINGLE = 'jostle.seen.jobs'
const MOST = 500 // single ones that are kept
const DAY_MS = 24 * 3600_000
const FIRST = Date.now() - DAY_MS // who has never said so is shown the failures of the last day
const listeners = new Set<() => void>()

let read = ''
let seen: Seen = { at: FIRST, first: true, jobs: new Set() }

export function lookedAt(): Seen {
  const kept = [localStorage.getItem(SAID) ?? '', localStorage.getItem(SINGLE) ?? '']
  if (kept.join() !== read) {
    read = kept.join()
    const at = Number(kept[0])
    seen = { at: at || FIRST, first: !at, jobs: new Set(kept[1]?.split(' ').filter(Boolean).map(Number)) }
  }
  return seen
}

function keep(name: string, value: string): void {
  localStorage.setItem(name, value)
  for (const listener of listeners) listener()
}

export function markSeen(): void {
  keep(SAID, String(Date.now()))
}

/** Somebody has looked at these, or has them tried again. */
export function markJobs(ids: readonly number[]): void {
  const jobs = new Set([...lookedAt().jobs, ...ids])
  keep(SINGLE, [...jobs].slice(-MOST).join(' '))
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  window.addEventListener('storage', listener)
  return () => {
    listeners.delete(listener)
    window.removeEventListener('storage', listener)
  }
}

export const useSeen = (): Seen => useSyncExternalStore(subscribe, lookedAt)
