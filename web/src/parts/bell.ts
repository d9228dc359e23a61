// "Tell me when it is free": by the browser's own notification, while this page is open somewhere.
import i18next from 'i18next'
import { live } from '../api/live'
import { isFree, ownNames } from '../model/people'
import { say } from './toast'

const watched = new Set<string>()

export const isWatched = (uuid: string): boolean => watched.has(uuid)

export async function watchCard(uuid: string): Promise<void> {
  if (watched.delete(uuid)) return
  if (typeof Notification !== 'undefined' && Notification.permission === 'default') await Notification.requestPermission()
  watched.add(uuid)
}

export function notify(text: string): void {
  say({ text })
  if (typeof Notification !== 'undefined' && Notification.permission === 'granted')
    new Notification('jostle', { body: text, tag: text })
}

live.subscribe(() => {
  const cards = live.picture.cards?.gpus
  if (!cards || watched.size === 0) return
  const own = ownNames(cards)
  for (const card of cards) {
    if (watched.has(card.uuid) && isFree(card, own)) {
      watched.delete(card.uuid)
      notify(i18next.t('card.isfree', { index: card.index }))
    }
  }
})
