// Who is on the cards. Colour says who: a hue per person by first seen, kept in this browser, so nobody changes colour.
import type { Card, Holder } from '../api/types'

export const HUES = ['violet', 'sand', 'pink', 'teal', 'olive'] as const
const SEEN = 'jostle.people'

export interface Person {
  name: string // 'you' for this user, '' for what shows no process
  hue: string
  initials: string
  cards: number[]
  usedMib: number
}

function seen(): string[] {
  try {
    const names: unknown = JSON.parse(localStorage.getItem(SEEN) ?? '[]')
    return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : []
  } catch {
    return []
  }
}

const order = seen()

export function hueOf(name: string): string {
  if (name === 'you') return 'you'
  if (name === '' || name === 'root') return 'none'
  let place = order.indexOf(name)
  if (place < 0) {
    place = order.push(name) - 1
    localStorage.setItem(SEEN, JSON.stringify(order.slice(-200)))
  }
  return HUES[place % HUES.length] ?? 'none'
}

export function initialsOf(name: string): string {
  if (name === '') return '?'
  const place = order.indexOf(name)
  return name.slice(0, place >= HUES.length ? 2 : 1).toUpperCase()
}

let me = ''

/** What the host calls the person who is logged in. */
export const setMe = (user: string): void => {
  me = user
}

/** Names under which this user appears on the cards. */
export function ownNames(cards: readonly Card[]): Set<string> {
  const shown = cards.flatMap((card) => card.holders.filter((holder) => holder.run).map((holder) => holder.user))
  return new Set(me ? [me, ...shown] : shown)
}

export const personOf = (holder: Holder, own: Set<string>): string => (holder.run || own.has(holder.user) ? 'you' : holder.user)

export interface Share {
  person: string
  mib: number
}

/** What of a card's memory is whose, the largest first. Memory that no process shows is nobody's (''). */
export function shares(card: Card, own: Set<string>): Share[] {
  const byPerson = new Map<string, number>()
  for (const holder of card.holders) {
    const person = personOf(holder, own)
    byPerson.set(person, (byPerson.get(person) ?? 0) + (holder.used_mib ?? 0))
  }
  if (card.runs.length && !byPerson.has('you')) byPerson.set('you', 0) // promised and not used yet
  const told = [...byPerson.values()].reduce((sum, mib) => sum + mib, 0)
  if (byPerson.size === 0 && card.state === 'ok' && card.used_mib - told > HIDDEN_MIB) byPerson.set('', card.used_mib)
  else if (byPerson.size === 1 && told < card.used_mib) for (const person of byPerson.keys()) byPerson.set(person, card.used_mib)
  return [...byPerson].map(([person, mib]) => ({ person, mib })).sort((a, b) => b.mib - a.mib)
}

const HIDDEN_MIB = 600 // a driver keeps up to this much of an empty card

export function people(cards: readonly Card[]): Person[] {
  const own = ownNames(cards)
  const found = new Map<string, Person>([['you', { name: 'you', hue: 'you', initials: '', cards: [], usedMib: 0 }]])
  for (const card of cards) {
    for (const { person, mib } of shares(card, own)) {
      const one = found.get(person) ?? { name: person, hue: hueOf(person), initials: initialsOf(person), cards: [], usedMib: 0 }
      one.cards.push(card.index)
      one.usedMib += mib
      found.set(person, one)
    }
  }
  return [...found.values()]
}

/** Free: it can be read, nobody is on it, and nobody keeps it from being used. */
export function isFree(card: Card, own: Set<string>): boolean {
  return card.state === 'ok' && !card.excluded && !card.quarantine && shares(card, own).length === 0
}

export const forYou = (card: Card): boolean => card.state === 'ok' && card.refusal === null && !card.excluded && !card.quarantine
