// Who is on the cards. Colour says who: a hue per person by first seen, kept in this browser, so nobody changes colour.
import type { Card, CardHistory, Holder } from '../api/types'

export const HUES = ['violet', 'sand', 'pink', 'teal', 'olive'] as const
const SEEN = 'jostle.people'

export interface Person {
  name: string // 'you' for this user, '' for what shows no process
  hue: string
  initials: string
  cards: number[]
  usedMib: number
  beside: string // who has more of each card that this person is on, '' if nobody has
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
  const found = new Map<string, Person>()
  const one = (name: string): Person => {
    const known = found.get(name)
    if (known) return known
    const initials = name === 'you' ? '' : initialsOf(name)
    const made = { name, hue: hueOf(name), initials, cards: [], usedMib: 0, beside: '' }
    found.set(name, made)
    return made
  }
  one('you')
  for (const card of cards) {
    const [first, ...rest] = shares(card, own)
    if (!first) continue
    for (const { person, mib } of [first, ...rest]) {
      one(person).cards.push(card.index)
      one(person).usedMib += mib
    }
    for (const { person } of rest) if (one(person).cards.length === 1) one(person).beside = first.person
    if (one(first.person).beside) one(first.person).beside = ''
  }
  return [...found.values()]
}

/** Since when none of a person's cards does anything: the latest of them; null if one does, or nobody knows. */
export function idleSince(person: Pick<Person, 'name' | 'cards' | 'beside'>, past: readonly CardHistory[]): number | null {
  if (person.name === 'you' || person.beside || person.cards.length === 0) return null
  const since = person.cards.map((index) => past.find((card) => card.index === index)?.idle_since ?? null)
  return since.some((at) => at === null) ? null : Math.max(...(since as number[]))
}

/** A process on a card that is not one's own. */
export interface Foreign {
  person: string
  pid: number
  card: number
  mib: number | null
  name: string
}

export function foreign(cards: readonly Card[]): Foreign[] {
  const own = ownNames(cards)
  return cards.flatMap((card) =>
    card.holders
      .filter((holder) => personOf(holder, own) !== 'you')
      .map(({ user, pid, used_mib, name }) => ({ person: user, pid, card: card.index, mib: used_mib, name })),
  )
}

/** By who it is, its number, what it is called, or the card it is on (`gpu 3`). */
export function isFound(one: Foreign, text: string): boolean {
  const wanted = text.trim().toLowerCase()
  return [one.person, String(one.pid), one.name, `gpu ${one.card}`].some((part) => part.toLowerCase().includes(wanted))
}

/** Whether a card is meant by its number (`gpu 3`) or by who is on it. */
export function isCardFound(card: Card, own: Set<string>, text: string): boolean {
  const wanted = text.trim().toLowerCase()
  if (!wanted) return false
  const names = shares(card, own).map(({ person }) => person)
  return (
    `gpu ${card.index}` === wanted || names.some((name) => name !== 'you' && name !== '' && name.toLowerCase().includes(wanted))
  )
}

/** Free: it can be read, nobody is on it, and nobody keeps it from being used. */
export function isFree(card: Card, own: Set<string>): boolean {
  return card.state === 'ok' && !card.excluded && !card.quarantine && shares(card, own).length === 0
}

export const forYou = (card: Card): boolean => card.state === 'ok' && card.refusal === null && !card.excluded && !card.quarantine
