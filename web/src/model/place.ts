// Where a waiting job stands among those of its queue, and where it goes. Jobs without a queue stand among all such jobs.
import type { Job } from '../api/types'

export type Place = { before: number } | { after: number }

export const byPlace = (a: Job, b: Job): number => a.place - b.place || a.id - b.id

function line(jobs: readonly Job[], of: Job): Job[] {
  return jobs.filter((job) => job.state === 'queued' && job.queue === of.queue).sort(byPlace)
}

/** One step up (-1) or down (1); null where there is none. */
export function stepped(jobs: readonly Job[], id: number, by: 1 | -1): Place | null {
  const moved = jobs.find((job) => job.id === id && job.state === 'queued')
  if (!moved) return null
  const waiting = line(jobs, moved)
  const other = waiting[waiting.indexOf(moved) + by]
  if (!other) return null
  return by < 0 ? { before: other.id } : { after: other.id }
}

/** Where it goes when it is dropped on another: into that one's place. Null: they are not of one queue, or nothing changes. */
export function droppedOn(jobs: readonly Job[], id: number, onto: number): Place | null {
  const moved = jobs.find((job) => job.id === id && job.state === 'queued')
  if (!moved || id === onto) return null
  const waiting = line(jobs, moved)
  const to = waiting.findIndex((job) => job.id === onto)
  if (to < 0) return null
  return to < waiting.indexOf(moved) ? { before: onto } : { after: onto }
}
