// The jobs of the State page as lines: one below the other, or under the queue that they are of.
import type { Job, Reason } from '../api/types'
import { ACTIVE, FINAL } from './jobs'
import { byPlace } from './place'

export interface QueueHead {
  queue: string | null
  batch: number | null // whose queue it is, where it has a number of its own
  name: string
  stands: Standing
}

/** How a queue stands, for one sentence. */
export type Standing =
  | { how: 'busy'; gpus: number[] }
  | { how: 'backoff'; left: number }
  | { how: 'waits'; reason: Reason | null }
  | { how: 'stopped'; job: number }
  | { how: 'over' }

export type Line = { head: QueueHead; job?: undefined } | { job: Job; head?: undefined }

const RANK: Record<string, number> = { running: 0, starting: 0, stopping: 0, queued: 1 }

/** What runs, what waits, then what ended, the latest first. */
export function ordered(jobs: readonly Job[]): Job[] {
  return [...jobs].sort((a, b) => {
    const rank = (RANK[a.state] ?? 2) - (RANK[b.state] ?? 2)
    if (rank) return rank
    return FINAL.has(a.state) ? (b.ended_at ?? 0) - (a.ended_at ?? 0) || b.id - a.id : a.id - b.id
  })
}

export const flat = (jobs: readonly Job[]): Line[] => ordered(jobs).map((job) => ({ job }))

/** `7/3` is queue 3 of batch 7; other names are shared. */
export function queueName(queue: string): { batch: number | null; name: string } {
  const [, batch, name] = /^(\d+)\/(.+)$/.exec(queue) ?? []
  return batch && name ? { batch: Number(batch), name } : { batch: null, name: queue }
}

function standing(jobs: readonly Job[]): Standing {
  const active = jobs.filter((job) => ACTIVE.has(job.state))
  if (active.length) return { how: 'busy', gpus: [...new Set(active.flatMap((job) => job.gpus))].sort((a, b) => a - b) }
  const next = jobs.filter((job) => job.state === 'queued').sort(byPlace)[0]
  if (next?.reason?.code === 'backoff') return { how: 'backoff', left: Number(next.reason.params.left_s ?? 0) }
  if (next) return { how: 'waits', reason: next.reason }
  const closed = jobs.find((job) => job.state === 'skipped' && job.reason?.code === 'queue_failed')
  return closed ? { how: 'stopped', job: Number(closed.reason?.params.job) } : { how: 'over' }
}

const PLACE: Record<Standing['how'], number> = { busy: 0, backoff: 1, waits: 1, stopped: 2, over: 3 }

/** Each queue with its jobs in the order in which it takes them: those at work first, and beside them what is in no queue. `all`:
 * every job there is, as a queue stands as it does whatever of it is listed. */
export function byQueue(jobs: readonly Job[], all: readonly Job[]): Line[] {
  const whole = grouped(all)
  const groups = [...grouped(jobs)].map(([queue, own]) => ({ queue, own, stands: standing(whole.get(queue) ?? own) }))
  groups.sort((a, b) => {
    const rank = PLACE[a.stands.how] - PLACE[b.stands.how]
    if (rank || (a.queue === null) === (b.queue === null)) return rank || compared(a.queue ?? '', b.queue ?? '')
    return a.queue === null ? 1 : -1
  })
  return groups.flatMap(({ queue, own, stands }): Line[] => [
    { head: { queue, stands, ...(queue === null ? { batch: null, name: '' } : queueName(queue)) } },
    ...(queue === null ? ordered(own) : [...own].sort(byPlace)).map((job) => ({ job })),
  ])
}

function grouped(jobs: readonly Job[]): Map<string | null, Job[]> {
  const groups = new Map<string | null, Job[]>()
  for (const job of jobs) {
    const group = groups.get(job.queue)
    if (group) group.push(job)
    else groups.set(job.queue, [job])
  }
  return groups
}

/** The newest batch first, queue 9 before queue 10. */
function compared(a: string, b: string): number {
  const [one, other] = [queueName(a), queueName(b)]
  return (other.batch ?? 0) - (one.batch ?? 0) || one.name.localeCompare(other.name, 'en', { numeric: true })
}
