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

interface Said {
  ask?: true
  held?: Held
  fresh?: Held
  logout?: true
}

const refused = new Set<string>() // keys that are good for nothing any more, whoever offers them

channel?.addEventListener('message', ({ data }: MessageEvent<Said>) => {
  if (data.ask && held) channel.postMessage({ held })
  else if (data.fresh)
    keep(data.fresh) // there is one cookie for all tabs, and it is of that login now
  else if (data.held && !held && !refused.has(data.held.key)) keep(data.held)
  else if (data.logout) drop()
})

function tell(): void {
  for (const listener of listeners) listener()
}

function keep(next: Held): void {
  held = next
  sessionStorage.setItem(KEY, next.key)
  sessionStorage.setItem(RIGHTS, next.rights)
  tell()
}

/** Somebody has logged in here: the other tabs have their cookie replaced by it, and are told the key that goes with it. */
export function logIn(next: Held): void {
  keep(next)
  channel?.postMessage({ fresh: next })
}

function drop(): void {
  held = null
  sessionStorage.removeItem(KEY)
  sessionStorage.removeItem(RIGHTS)
  tell()
}

/** The key is not that of the browser's cookie: another login has replaced it, or it is over. `key`: as it was sent. */
export function refuse(key: string | null): void {
  if (!key || key !== held?.key) return // another is in its place already
  refused.add(key)
  drop()
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
