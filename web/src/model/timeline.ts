// Who had which card when, as bars: own runs and others', cut to what is shown, beside each other where they overlap.
import type { CardHistory, History, Job, Span } from '../api/types'
import { commonName } from './jobs'

export interface Bar {
  span: Span
  row: number
  from: number // seconds
  to: number
  lane: number
  lanes: number // of those that overlap with it, one by one
  group: number // of these, by their place in the row
  idle: boolean // held without load
}

const LANES = 4

export const isOwn = (span: Span): boolean => span.job !== null

const LEAST_S = 15 * 60

/** Where the picture begins: with the first that is known, so that a young history is no sliver at the edge. */
export function shownFrom({ gpus, began_at, step_s }: Pick<History, 'gpus' | 'began_at' | 'step_s'>, from: number, now: number) {
  const known = gpus.flatMap((card) => {
    const read = card.load.findIndex((value) => value !== null)
    return [...card.spans.map((span) => span.began_at), ...(read < 0 ? [] : [began_at + read * step_s])]
  })
  return known.length ? Math.max(from, Math.min(...known, now - LEAST_S)) : from
}

/** The spans of each card between two instants. */
export function bars(cards: readonly CardHistory[], from: number, now: number): Bar[] {
  return cards.flatMap((card, row) => {
    const cut = card.spans
      .map((span) => ({ span, from: Math.max(from, span.began_at), to: Math.min(now, span.ended_at ?? now) }))
      .filter((one) => one.to > from && one.from < now)
      .sort((a, b) => a.from - b.from || a.to - b.to)
    const groups: number[][] = [] // of each that overlap, the ends of their lanes
    const placed = cut.map((one) => {
      if (!groups.at(-1)?.some((end) => end > one.from)) groups.push([])
      const ends = groups.at(-1) ?? []
      let lane = ends.findIndex((end) => end <= one.from)
      if (lane < 0) lane = Math.min(ends.length, LANES - 1)
      ends[lane] = Math.max(ends[lane] ?? 0, one.to)
      return { ...one, row, lane, idle: false, group: groups.length - 1 }
    })
    return placed.flatMap((bar) => split(bar, card.idle_since)).map((bar) => ({ ...bar, lanes: groups[bar.group]?.length ?? 1 }))
  })
}

/** Those that share a card, for one label: none of their bars is high enough for its own. */
export interface Sharing {
  row: number
  from: number
  to: number
  jobs: number[]
  name: string // that the jobs have in common
  users: string[]
  look: 'own' | 'past' | 'other'
}

export function sharings(found: readonly Bar[]): Sharing[] {
  const groups = new Map<string, Bar[]>()
  for (const bar of found) {
    if (bar.lanes < 2) continue
    const key = `${bar.row}.${bar.group}`
    groups.set(key, [...(groups.get(key) ?? []), bar])
  }
  return [...groups.values()].map((bars) => {
    const own = bars.filter((bar) => isOwn(bar.span))
    const jobs = [...new Set(own.map((bar) => bar.span.job ?? 0))]
    return {
      row: bars[0]?.row ?? 0,
      from: Math.min(...bars.map((bar) => bar.from)),
      to: Math.max(...bars.map((bar) => bar.to)),
      jobs,
      name: commonName(own.map((bar) => bar.span.name ?? '')),
      users: [...new Set(bars.filter((bar) => !isOwn(bar.span)).map((bar) => bar.span.user ?? ''))],
      look: own.some((bar) => bar.span.ended_at === null) ? 'own' : own.length ? 'past' : 'other',
    }
  })
}

export interface Coming {
  job: Job
  row: number
  from: number
  to: number | null // null: no end is known
  planned: boolean // else the rest of a run
}

/** What is still to come on each card, as far as it can be told: the rest of runs, and planned starts. */
export function coming(jobs: readonly Job[], cards: readonly CardHistory[], now: number): Coming[] {
  return jobs.flatMap((job) => {
    const { estimate } = job
    const planned = job.state === 'queued'
    const from = planned ? estimate?.starts_at : estimate?.ends_at == null ? null : now
    if (!estimate || from == null) return []
    const indices = (planned ? estimate.gpus : job.gpus) ?? []
    return indices.flatMap((index) => {
      const row = cards.findIndex((card) => card.index === index)
      return row < 0 ? [] : [{ job, row, from: Math.max(now, from), to: planned ? null : estimate.ends_at, planned }]
    })
  })
}

/** What holds a card and does nothing with it is told apart from then on. */
function split<T extends { span: Span; from: number; to: number; idle: boolean }>(bar: T, idleSince: number | null): T[] {
  if (idleSince === null || bar.span.ended_at !== null || isOwn(bar.span) || idleSince >= bar.to) return [bar]
  if (idleSince <= bar.from) return [{ ...bar, idle: true }]
  return [
    { ...bar, to: idleSince },
    { ...bar, from: idleSince, idle: true },
  ]
}

/** A line over points that each stand for a stretch of the width, 0 to 100 high; where nobody read there is a gap. */
export function curve(points: readonly (number | null)[], width: number, height: number): { line: string; area: string } {
  const step = width / Math.max(1, points.length)
  const at = (x: number): string => (x * step).toFixed(2)
  let line = ''
  let area = ''
  for (const [i, value] of points.entries()) {
    if (value === null) continue
    const y = (height - (Math.min(100, Math.max(0, value)) / 100) * height).toFixed(1)
    const begins = points[i - 1] == null
    const ends = points[i + 1] == null
    const drawn = `${begins ? `${at(i)} ${y}L` : ''}${at(i + 0.5)} ${y}${ends ? `L${at(i + 1)} ${y}` : ''}`
    line += `${begins ? 'M' : 'L'}${drawn}`
    area += `${begins ? `M${at(i)} ${height}L` : 'L'}${drawn}${ends ? `L${at(i + 1)} ${height}Z` : ''}`
  }
  return { line, area }
}
