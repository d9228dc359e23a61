// Who is logged in, in this tab. The key lives in sessionStorage, which only this origin and tab can read: cookies are
// shared by all ports of a host, so the cookie alone is no proof. A new tab asks an open one for the key.
import type { Rights } from './types'

const KEY = 'jostle.key'
const RIGHTS = 'jostle.rights'
const CHANNEL = 'jostle.session'
const ANSWER_WITHIN_MS = 300

interface Held {
  key: string
  rights: Rights
}

type Listener = () => void
const listeners = new Set<Listener>()
let held: Held | null = read()
const channel = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel(CHANNEL)

function read(): Held | null {
  const key = sessionStorage.getItem(KEY)
  return key ? { key, rights: sessionStorage.getItem(RIGHTS) === 'read' ? 'read' : 'all' } : null
}

channel?.addEventListener('message', (message: MessageEvent<{ ask?: true; held?: Held; logout?: true }>) => {
  if (message.data.ask && held) channel.postMessage({ held })
  else if (message.data.held && !held) keep(message.data.held)
  else if (message.data.logout) drop()
})

function tell(): void {
  for (const listener of listeners) listener()
}

export function keep(next: Held): void {
  held = next
  sessionStorage.setItem(KEY, next.key)
  sessionStorage.setItem(RIGHTS, next.rights)
  tell()
}

function drop(): void {
  held = null
  sessionStorage.removeItem(KEY)
  sessionStorage.removeItem(RIGHTS)
  tell()
}

/** Forgets the key here; `everywhere` after a logout, which ends the session of the other tabs, too. */
export function forget(everywhere = false): void {
  drop()
  if (everywhere) channel?.postMessage({ logout: true })
}

export const session = {
  get key(): string | null {
    return held?.key ?? null
  },
  get rights(): Rights {
    return held?.rights ?? 'read'
  },
  subscribe(listener: Listener): () => void {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
  snapshot: (): Held | null => held,
}

/** True once another tab of this browser has handed over its key, false if none answers. */
export function askOtherTabs(): Promise<boolean> {
  if (held || !channel) return Promise.resolve(held !== null)
  return new Promise((resolve) => {
    const stop = session.subscribe(() => done(held !== null))
    const timer = setTimeout(() => done(false), ANSWER_WITHIN_MS)
    function done(found: boolean): void {
      clearTimeout(timer)
      stop()
      resolve(found)
    }
    channel.postMessage({ ask: true })
  })
}
