// Jobs in the order in which people ask for them: failed and not yet seen, running, waiting (folded by reason), ended as counts.
import type { Job, Reason } from '../api/types'

export interface Group {
  key: string
  jobs: Job[]
  reason: Reason | null
}

export type Ended = 'succeeded' | 'failed' | 'cancelled' | 'skipped'

export interface Sections {
  unseen: Job[]
  running: Job[]
  waiting: Group[]
  waitingCount: number
  ended: Record<Ended, number>
}

export const ACTIVE = new Set(['starting', 'running', 'stopping'])
export const FINAL = new Set(['succeeded', 'failed', 'cancelled', 'skipped'])

/** Jobs with one key wait for the same thing, so one sentence says it for all of them. */
function groupKey(job: Job): string {
  const reason = job.reason
  if (!reason) return `${job.id}`
  if (reason.code === 'behind') return `behind|${job.queue}`
  if (reason.code === 'no_engine' || reason.code === 'on_hold') return reason.code
  return `${reason.code}|${reason.text ?? ''}|${job.batch}`
}

export function sections(jobs: readonly Job[], seenAt: number, dayStart: number): Sections {
  const unseen: Job[] = []
  const running: Job[] = []
  const groups = new Map<string, Group>()
  const ended = { succeeded: 0, failed: 0, cancelled: 0, skipped: 0 }
  let waitingCount = 0
  for (const job of jobs) {
    if (ACTIVE.has(job.state)) running.push(job)
    else if (job.state === 'queued') {
      waitingCount += 1
      const key = groupKey(job)
      const group = groups.get(key)
      if (group) group.jobs.push(job)
      else groups.set(key, { key, jobs: [job], reason: job.reason })
    } else {
      const at = (job.ended_at ?? 0) * 1000
      if (job.state === 'failed' && at > seenAt) unseen.push(job)
      if (at >= dayStart) ended[job.state as Ended] += 1
    }
  }
  running.sort((a, b) => (a.started_at ?? 0) - (b.started_at ?? 0))
  unseen.sort((a, b) => (b.ended_at ?? 0) - (a.ended_at ?? 0))
  return { unseen, running, waiting: [...groups.values()], waitingCount, ended }
}

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

/** How long it has run or ran, in seconds. */
export function elapsed(job: Job, now: number): number | null {
  if (job.ran_s !== null) return job.ran_s
  if (job.started_at === null) return null
  return Math.max(0, (job.ended_at ?? now / 1000) - job.started_at)
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

/** Trying again cannot help where these were the reason; the way out is another request. */
const BEYOND_HELP = new Set(['oom_beyond_any_card'])
export const retryHelps = (job: Job): boolean => !(job.reason && BEYOND_HELP.has(job.reason.code))

export function matches(job: Job, text: string): boolean {
  const wanted = text.trim().toLowerCase()
  if (!wanted) return true
  if (/^#?\d+$/.test(wanted)) return String(job.id).startsWith(wanted.replace('#', ''))
  const hay = [job.name, job.queue ?? '', job.state, job.error_type ?? '', job.tags.join(' '), job.commands.join(' ')]
  return hay.join('\n').toLowerCase().includes(wanted)
}
