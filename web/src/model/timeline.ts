// What was on which card when: own runs as the store knows them, others as this tab has seen them.
import type { Sample } from '../api/live'
import type { Card, Job } from '../api/types'
import { ACTIVE } from './jobs'

export interface Bar {
  job: Job
  row: number
  from: number
  to: number
}

/** The last run of each job on each of its cards, cut to what is shown. Times in seconds. */
export function bars(jobs: readonly Job[], cards: readonly Card[], from: number, now: number): Bar[] {
  const rows = new Map(cards.map((card, i) => [card.uuid, i]))
  const found: Bar[] = []
  for (const job of jobs) {
    if (job.started_at === null || (job.state === 'queued' && !job.ended_at)) continue
    const to = ACTIVE.has(job.state) ? now : (job.ended_at ?? now)
    if (to < from) continue
    for (const uuid of job.gpu_uuids) {
      const row = rows.get(uuid)
      if (row !== undefined) found.push({ job, row, from: Math.max(from, job.started_at), to: Math.min(now, to) })
    }
  }
  return found
}

export interface Other {
  person: string
  row: number
  from: number
  to: number
}

/** Who else was on each card, as far as this tab saw it. Times in seconds. */
export function others(samples: ReadonlyMap<string, readonly Sample[]>, cards: readonly Card[], from: number): Other[] {
  const found: Other[] = []
  for (const [row, card] of cards.entries()) {
    let open: Other | null = null
    for (const sample of samples.get(card.uuid) ?? []) {
      const at = sample.at / 1000
      if (open && open.person === sample.other) open.to = at
      else {
        open = sample.other && at >= from ? { person: sample.other, row, from: at, to: at } : null
        if (open) found.push(open)
      }
    }
  }
  return found
}
