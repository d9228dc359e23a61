// When this person has looked last: failures after it are unseen. Kept in this browser, shared by its tabs.
import { useSyncExternalStore } from 'react'

const KEPT = 'jostle.seen'
const listeners = new Set<() => void>()

export function seenAt(): number {
  const at = Number(localStorage.getItem(KEPT))
  if (at > 0) return at
  const now = Date.now()
  localStorage.setItem(KEPT, String(now - DAY_MS)) // a first visit shows the failures of the last day
  return now - DAY_MS
}

const DAY_MS = 24 * 3600_000

export function markSeen(): void {
  localStorage.setItem(KEPT, String(Date.now()))
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  window.addEventListener('storage', listener)
  return () => {
    listeners.delete(listener)
    window.removeEventListener('storage', listener)
  }
}

export const useSeenAt = (): number => useSyncExternalStore(subscribe, seenAt)
