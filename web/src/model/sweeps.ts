// A sweep: the jobs of one batch that differ in the same parameters. It is one thing to a person, so it is one row.
import type { Job, State } from '../api/types'

export interface Sweep {
  key: string
  batch: number
  axes: string // `lr×seed`: what its jobs differ in
  jobs: Job[]
}

export interface Progress {
  before?: number // skipped, as it was done before
  done: number
  failed: number
  running: number
  waiting: number
  dropped: number // cancelled or skipped
}

/** The sweep that a job belongs to by its parameters; '' for a job of none. */
export function sweepKey(job: Pick<Job, 'batch' | 'params'>): string {
  const names = Object.keys(job.params ?? {})
  return names.length ? `${job.batch}|${names.sort().join()}` : ''
}

/** All sweeps of more than one job, by their keys. */
export function sweeps(jobs: readonly Job[]): Map<string, Sweep> {
  const found = new Map<string, Sweep>()
  for (const job of jobs) {
    const key = sweepKey(job)
    if (!key) continue
    const sweep = found.get(key)
    if (sweep) sweep.jobs.push(job)
    else found.set(key, { key, batch: job.batch, axes: '', jobs: [job] })
  }
  for (const [key, sweep] of found) {
    if (sweep.jobs.length < 2) found.delete(key)
    else sweep.axes = axesOf(sweep.jobs).join('×')
  }
  return found
}

function axesOf(jobs: readonly Job[]): string[] {
  const names = Object.keys(jobs[0]?.params ?? {})
  return names.filter((name) => new Set(jobs.map((job) => job.params[name])).size > 1)
}

const COUNTED: Record<State, keyof Progress> = {
  queued: 'waiting',
  starting: 'running',
  running: 'running',
  stopping: 'running',
  succeeded: 'done',
  failed: 'failed',
  cancelled: 'dropped',
  skipped: 'dropped',
}

const doneBefore = ({ state, reason }: Pick<Job, 'state' | 'reason'>): boolean =>
  state === 'skipped' && reason?.code === 'done_before'

export function progress(jobs: readonly Pick<Job, 'state' | 'reason'>[]): Progress {
  const count: Progress = { done: 0, failed: 0, running: 0, waiting: 0, dropped: 0 }
  for (const job of jobs) {
    const look = doneBefore(job) ? 'before' : COUNTED[job.state]
    count[look] = (count[look] ?? 0) + 1
  }
  return count
}

/** The same from how many there are in each state. */
export function progressOf(counts: Partial<Record<State, number>>, before: number): Progress {
  const count: Progress = { before, done: 0, failed: 0, running: 0, waiting: 0, dropped: -before }
  for (const [state, n] of Object.entries(counts)) {
    const look = COUNTED[state as State]
    count[look] = (count[look] ?? 0) + n
  }
  return count
}

export interface Segment {
  look: keyof Progress
  share: number
}

const ORDER: (keyof Progress)[] = ['before', 'done', 'failed', 'dropped', 'running', 'waiting']
const ONE_EACH = 60

/** A segment per job; above sixty one per state, as wide as its part. */
export function segments(count: Progress): Segment[] {
  const parts = ORDER.map((look) => ({ look, share: count[look] ?? 0 })).filter(({ share }) => share > 0)
  if (parts.reduce((sum, { share }) => sum + share, 0) > ONE_EACH) return parts
  return parts.flatMap(({ look, share }) => Array.from({ length: share }, () => ({ look, share: 1 })))
}
