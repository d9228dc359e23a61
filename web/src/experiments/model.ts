// Jobs of a batch folded over seeds, and a table of results: what is drawn, without drawing. The figures are the server's.
import type { Job, State } from '../api/types'
import { quoted } from '../model/command'
import { elapsed, type Look } from '../model/jobs'
import { progress } from '../model/sweeps'
import type { Batch, Cell, Missing, ResultGroup, Results } from './types'

export function lookOfBatch(batch: Pick<Batch, 'counts' | 'jobs'>): Look {
  const of = (state: State): number => batch.counts[state] ?? 0
  if (of('running') + of('starting') + of('stopping')) return 'running'
  if (of('queued')) return 'queued'
  if (of('failed')) return 'failed'
  return of('cancelled') && !of('succeeded') ? 'cancelled' : 'succeeded'
}

// --- folding

export const SEED = 'seed' // as `results --seed-key` has it by default

export interface Fold {
  key: string
  params: [string, string][] // in which groups differ
  jobs: Job[]
}

/** Without those that were tried again as another job. */
export function newest(jobs: readonly Job[]): Job[] {
  const again = new Set(jobs.map((job) => job.retry_of).filter((id) => id !== null))
  return jobs.filter((job) => !again.has(job.id))
}

export function axes(jobs: readonly Job[]): [string, number][] {
  const keys = [...new Set(jobs.flatMap((job) => Object.keys(job.params)))]
  return keys.map((key) => [key, new Set(jobs.map((job) => job.params[key])).size])
}

/** Jobs that differ in the seed only, together; one that has no parameters is a group of its own. */
export function folds(jobs: readonly Job[]): Fold[] {
  const varying = axes(jobs)
    .filter(([key, n]) => key !== SEED && n > 1)
    .map(([key]) => key)
  const found = new Map<string, Fold>()
  for (const job of jobs) {
    const rest = Object.entries(job.params).filter(([key]) => key !== SEED)
    const key = rest.length || SEED in job.params ? JSON.stringify(rest) : `#${job.id}`
    const fold = found.get(key)
    if (fold) fold.jobs.push(job)
    else found.set(key, { key, params: rest.filter(([name]) => varying.includes(name)), jobs: [job] })
  }
  return [...found.values()]
}

export function lookOfFold(jobs: readonly Job[]): Look {
  const has = (...states: State[]): boolean => jobs.some((job) => states.includes(job.state))
  if (has('failed')) return 'failed'
  if (has('running', 'starting', 'stopping')) return 'running'
  if (has('queued')) return 'queued'
  if (has('succeeded') || (progress(jobs).before ?? 0) > 0) return 'succeeded'
  return has('cancelled') ? 'cancelled' : 'skipped'
}

/** How long its jobs ran, together; null: none has begun. */
export function ran(jobs: readonly Job[], now: number): number | null {
  const times = jobs.map((job) => elapsed(job, now)).filter((time) => time !== null)
  return times.length ? times.reduce((sum, time) => sum + time, 0) : null
}

/** The key that makes the columns: the first with several values, where another one is left for the rows. */
export function columnKey(jobs: readonly Job[], most = 6): string | null {
  const several = axes(jobs).filter(([key, n]) => key !== SEED && n > 1)
  return several.length > 1 ? (several.find(([, n]) => n <= most)?.[0] ?? null) : null
}

// --- the table

export interface Line {
  name: string
  cells: (Cell | null)[] // one per column
  runs: number[]
}

export interface Table {
  keys: string[]
  columns: { metric: string; value: string | null }[]
  lines: Line[]
  most: number[] // of each column, the largest n
}

/** As `results` lays it out: a line per group; with `across` one for all that differ in that key only. */
export function table(results: Results, across: string | null): Table {
  const keys = results.keys.filter((key) => key !== across)
  const shown = keys.filter((key) => new Set(results.groups.map((group) => group.params[key])).size > 1)
  const values = across ? [...new Set(results.groups.map((group) => group.params[across] ?? ''))] : [null]
  const columns = values.flatMap((value) => results.metrics.map(({ name }) => ({ metric: name, value })))
  const rows = new Map<string, ResultGroup[]>()
  for (const group of results.groups) {
    const row = JSON.stringify(keys.map((key) => group.params[key] ?? null))
    rows.set(row, [...(rows.get(row) ?? []), group])
  }
  const lines = [...rows.values()].map((groups) => {
    const of = columns.map(({ value }) => groups.find((group) => across === null || (group.params[across] ?? '') === value))
    const first = groups[0]?.params ?? {}
    const named = (shown.length ? shown : keys).map((key) => first[key] ?? '–')
    return {
      name: named.join(' · ') || '–',
      cells: of.map((group, k) => group?.metrics[columns[k]?.metric ?? ''] ?? null),
      runs: of.map((group) => group?.runs ?? 0),
    }
  })
  const most = columns.map((_, k) => Math.max(0, ...lines.map((line) => line.cells[k]?.n ?? 0)))
  return { keys: shown.length ? shown : keys, columns, lines, most }
}

/** Fewer runs than its neighbours have, or than it should have: such a mean is easily taken for one of all. */
export const fewer = (cell: Cell | null, runs: number, most: number): boolean => cell !== null && (cell.n < most || cell.n < runs)

export interface Lack {
  unfinished: number
  failed: number
  other: number
}

/** Why runs of this metric are missing. What was run again is not. */
export function lacking(missing: readonly Missing[], metric: string): Lack {
  const concerned = missing.filter((one) => one.metric === null || one.metric === metric)
  const isAgain = ({ reason }: Missing): boolean => reason.code === 'again' || reason.code === 'instead'
  const unfinished = concerned.filter(({ reason }) => reason.code === 'unfinished').length
  const failed = concerned.filter((one) => one.state === 'failed' && !isAgain(one)).length
  const again = concerned.filter(isAgain).length
  return { unfinished, failed, other: concerned.length - unfinished - failed - again }
}

/** The name of the job that a label has: `job 12 (x)`. */
export const nameOf = ({ label, job }: Pick<Missing, 'label' | 'job'>): string =>
  job === null ? label : label.slice(`job ${job} (`.length, -1)

export const figure = (value: number, decimals = 2): string => {
  const text = value.toFixed(decimals)
  return text.length < 20 ? text : value.toExponential(decimals)
}

/** Finds the figures of a metric by the parameters of a job. */
export function cellFinder(results: Results | undefined, metric: string): (job: Job | undefined) => Cell | undefined {
  const key = (params: Record<string, string>): string => JSON.stringify(results?.keys.map((name) => params[name] ?? null))
  const cells = new Map(results?.groups.map((group) => [key(group.params), group.metrics[metric]]))
  return (job) => (job && results ? cells.get(key(job.params)) : undefined)
}

// --- the axis of a plot

const LEAST = 0.01 // of the size of the values: what differs by less is not spread over the whole axis

/** Round numbers that cover a range: at least the two ends of it. */
export function ticks(from: number, to: number, about = 4): number[] {
  const span = Math.max(to - from, LEAST * Math.max(Math.abs(from), Math.abs(to))) || 1
  const low = (from + to - span) / 2
  const high = (from + to + span) / 2
  const rough = span / about
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5, 10].find((one) => one * power >= rough) ?? 10) * power
  const first = Math.floor(low / step + 1e-9)
  const last = Math.ceil(high / step - 1e-9)
  const digits = Math.max(0, -Math.floor(Math.log10(step)))
  return Array.from({ length: Math.max(1, last - first) + 1 }, (_, k) =>
    Number(((first + k) * step).toFixed(Math.min(20, digits))),
  )
}

// --- commands

export interface Asked {
  batch: number
  metrics: readonly string[]
  across: string | null
}

export function resultsCommand({ batch, metrics, across }: Asked, format?: string): string {
  const words = ['jostle results', String(batch), ...metrics.map((metric) => `--metric ${quoted(metric)}`)]
  if (across) words.push(`--across ${quoted(across)}`)
  if (format) words.push(`--format ${format}`)
  return words.join(' ')
}

export const runCommand = (file: string, suite: string | null = null, detach = false): string =>
  `jostle run${detach ? ' --detach' : ''} ${quoted(file)}${suite ? ` --suite ${quoted(suite)}` : ''}`
