// Jobs in the order in which people ask for them: failed and not yet seen, running, waiting (folded by reason), ended as counts.
import type { Job, Ps, Reason } from '../api/types'
import { byPlace } from './place'
import { type Sweep, sweepKey, sweeps } from './sweeps'

/** Jobs that one row stands for. */
export interface Group {
  key: string
  jobs: Job[]
  reason: Reason | null
  sweep: Sweep | null
}

export type Ended = 'succeeded' | 'failed' | 'cancelled' | 'skipped'

export interface Sections {
  unseen: Job[]
  running: Group[]
  runningCount: number
  waiting: Group[]
  waitingCount: number
  ended: Record<Ended, number>
}

export const ACTIVE = new Set(['starting', 'running', 'stopping'])
export const FINAL = new Set(['succeeded', 'failed', 'cancelled', 'skipped'])

/** What keeps everything from starting, so that one row stands for all that waits. */
export const OF_ALL = new Set(['no_engine', 'on_hold'])

/** Jobs with one key wait for the same thing, or are of one sweep, so one row says it for all of them. */
function groupKey(job: Job, sweep: Sweep | undefined): string {
  const reason = job.reason
  if (reason && OF_ALL.has(reason.code)) return reason.code
  if (sweep) return `sweep|${sweep.key}`
  if (!reason) return `${job.id}`
  if (reason.code === 'behind') return `behind|${job.queue}`
  return `${reason.code}|${reason.text ?? job.batch}`
}

function gather(jobs: readonly Job[], keyOf: (job: Job) => string, of: Map<string, Sweep>): Group[] {
  const groups = new Map<string, Group>()
  for (const job of jobs) {
    const key = keyOf(job)
    const group = groups.get(key)
    if (group) group.jobs.push(job)
    else
      groups.set(key, {
        key,
        jobs: [job],
        reason: job.reason,
        sweep: key.startsWith('sweep|') ? (of.get(sweepKey(job)) ?? null) : null,
      })
  }
  return [...groups.values()]
}

const FOLD_RUNNING = 3 // more running jobs of one sweep than this are one row

/** What a person has looked at. */
export interface Seen {
  at: number // ms; all that failed before
  first: boolean // they never said so
  jobs: ReadonlySet<number> // single ones after it
}

export const isUnseen = (job: Job, seen: Seen): boolean =>
  job.state === 'failed' && (job.ended_at ?? 0) * 1000 > seen.at && !seen.jobs.has(job.id)

/** `all`: every job there is, as far as it is known; a sweep's row tells of all of its jobs, whichever are listed. */
export function sections(jobs: readonly Job[], seen: Seen, dayStart: number, all: readonly Job[] = jobs): Sections {
  const unseen: Job[] = []
  const running: Job[] = []
  const waiting: Job[] = []
  const ended = { succeeded: 0, failed: 0, cancelled: 0, skipped: 0 }
  for (const job of jobs) {
    if (ACTIVE.has(job.state)) running.push(job)
    else if (job.state === 'queued') waiting.push(job)
    else {
      const at = (job.ended_at ?? 0) * 1000
      if (isUnseen(job, seen)) unseen.push(job)
      if (at >= dayStart) ended[job.state as Ended] += 1
    }
  }
  running.sort((a, b) => (a.started_at ?? 0) - (b.started_at ?? 0))
  unseen.sort((a, b) => (b.ended_at ?? 0) - (a.ended_at ?? 0))
  waiting.sort(byPlace)
  const of = sweeps(all)
  const runs = new Map<string, number>()
  for (const job of running) runs.set(sweepKey(job), (runs.get(sweepKey(job)) ?? 0) + 1)
  const folds = (job: Job): boolean => of.has(sweepKey(job)) && (runs.get(sweepKey(job)) ?? 0) > FOLD_RUNNING
  return {
    unseen,
    running: gather(running, (job) => (folds(job) ? `sweep|${sweepKey(job)}` : `${job.id}`), of),
    runningCount: running.length,
    waiting: gather(waiting, (job) => groupKey(job, of.get(sweepKey(job))), of),
    waitingCount: waiting.length,
    ended,
  }
}

/** What a group waits for, each reason once with how many wait for it, the most frequent first. */
export function reasonsOf(jobs: readonly Job[]): { reason: Reason; count: number }[] {
  const found = new Map<string, { reason: Reason; count: number }>()
  for (const { reason } of jobs) {
    if (!reason) continue
    const key = reason.text ?? reason.code
    const known = found.get(key)
    if (known) known.count += 1
    else found.set(key, { reason, count: 1 })
  }
  return [...found.values()].sort((a, b) => b.count - a.count)
}

/** What an act on a group is about: a sweep is meant as a whole, what of it runs included. */
export const meant = (group: Group): Job[] => group.sweep?.jobs.filter((job) => !FINAL.has(job.state)) ?? group.jobs

export function since(jobs: readonly Job[], at: number): { done: number; failed: number } {
  const later = jobs.filter((job) => (job.ended_at ?? 0) * 1000 > at)
  return {
    done: later.filter((job) => job.state === 'succeeded').length,
    failed: later.filter((job) => job.state === 'failed').length,
  }
}

const BETWEEN = /[\s·,/|]/

/** The name that several jobs share: what their names begin with alike, up to a border between words. */
export function commonName(names: readonly string[]): string {
  const [first = '', ...rest] = names
  let length = first.length
  for (const name of rest) {
    let n = 0
    while (n < length && n < name.length && name[n] === first[n]) n += 1
    length = n
  }
  const all = [first, ...rest]
  const border = all.every((name) => name.length === length || BETWEEN.test(name[length] ?? ''))
  const shared = first.slice(0, length)
  const whole = border ? shared : shared.slice(0, Math.max(0, shared.search(/[\s·,/|][^\s·,/|]*$/)))
  return whole.replace(/[\s·,/|]+$/, '') || first
}

const NAMED = 2

/** What jobs of one row are called: what their names share, else each name while they are few; null: they are many and differ. */
export function groupName(jobs: readonly Pick<Job, 'name'>[]): string | null {
  const names = [...new Set(jobs.map((job) => job.name))]
  const shared = commonName(names)
  if (names.every((name) => name.startsWith(shared))) return shared
  return names.length <= NAMED ? names.join(', ') : null
}

/** How long it has run or ran, in seconds. */
export function elapsed(job: Job, now: number): number | null {
  if (job.ran_s !== null) return job.ran_s
  if (job.started_at === null) return null
  return Math.max(0, (job.ended_at ?? now / 1000) - job.started_at)
}

/** When a running job is over: about, or at the latest; null: no telling. */
export function endOf({ estimate }: Pick<Job, 'estimate'>): { at: number; latest: boolean } | null {
  if (estimate?.ends_at != null) return { at: estimate.ends_at, latest: false }
  return estimate?.limit_at == null ? null : { at: estimate.limit_at, latest: true }
}

/** How far a running job is, 0 to 1, by when it ends about. */
export function doneShare(job: Job, now: number): number | null {
  const end = job.estimate?.ends_at
  if (end == null || job.started_at === null || end <= job.started_at) return null
  return Math.min(1, Math.max(0, (now / 1000 - job.started_at) / (end - job.started_at)))
}

export type Look =
  | 'running'
  | 'starting'
  | 'queued'
  | 'backoff'
  | 'held'
  | 'stopping'
  | 'succeeded'
  | 'failed'
  | 'cancelled'
  | 'skipped'

export function lookOf(job: Pick<Job, 'state' | 'intent' | 'reason' | 'attempt'>): Look {
  if (job.state !== 'queued') return job.state
  if (job.intent === 'hold') return 'held'
  return job.reason?.code === 'backoff' ? 'backoff' : 'queued'
}

/** Whether it takes other cards while it runs. */
export const resizable = (job: Pick<Job, 'state' | 'resize'>): boolean => job.state === 'running' && job.resize != null

/** Trying again cannot help where these were the reason; the way out is another request. */
const BEYOND_HELP = new Set(['oom_beyond_any_card'])
export const retryHelps = (job: Job): boolean => !(job.reason && BEYOND_HELP.has(job.reason.code))

export function matches(job: Job, text: string): boolean {
  const wanted = text.trim().toLowerCase()
  if (!wanted) return true
  if (/^#?\d+$/.test(wanted)) return String(job.id).startsWith(wanted.replace('#', ''))
  if (/^gpu ?\d+$/.test(wanted)) return ACTIVE.has(job.state) && job.gpus.includes(Number(wanted.slice(3)))
  const hay = [job.name, job.queue ?? '', job.state, job.error_type ?? '', job.tags.join(' '), job.commands.join(' ')]
  return hay.join('\n').toLowerCase().includes(wanted)
}

/** The list with these jobs as they are now; the very same list where nothing of it has changed. */
export function patched(known: Ps, fresh: Job[]): Ps {
  const byId = new Map(fresh.map((job) => [job.id, job]))
  let changed = false
  const jobs = known.jobs.map((job) => {
    const now = byId.get(job.id)
    if (!now) return job
    byId.delete(job.id)
    if (JSON.stringify(now) === JSON.stringify(job)) return job
    changed = true
    return now
  })
  if (byId.size) return { ...known, jobs: [...jobs, ...byId.values()] }
  return changed ? { ...known, jobs } : known
}
