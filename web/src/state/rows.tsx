// The lines of the list. They are many and scroll by fast, so they take their words from above and ask nothing themselves.
import { type CSSProperties, memo } from 'react'
import type { Job } from '../api/types'
import { lookOf } from '../model/jobs'
import type { QueueHead, Standing } from '../model/lines'
import { useNarrow } from '../parts/narrow'
import { PlainPill } from '../parts/pill'
import { spoken } from '../parts/spoken'

const [ROW, FINGER] = [28, 44]
/** How high a row is. */
export const useRowHeight = (): number => (useNarrow() ? FINGER : ROW)

export type Words = (key: string, values?: Record<string, unknown>) => string

/** The words of a row, looked up once for all of them. */
export interface RowWords {
  mark: (id: number) => string
  attempt: (n: number) => string
  state: (key: string) => string
}

export function rowWords(t: Words): RowWords {
  const [mark, attempt] = [t('jobs.mark', { id: HOLE }), t('jobs.tryn', { n: HOLE })]
  const known = new Map<string, string>()
  return {
    mark: (id) => mark.replace(HOLE, String(id)),
    attempt: (n) => attempt.replace(HOLE, String(n)),
    state: (key) => known.get(key) ?? (known.set(key, t(key)).get(key) as string),
  }
}

const HOLE = '\u0001'

const at = (place: number, height: number): CSSProperties => ({ height, transform: `translateY(${place * height}px)` })

interface Where {
  place: number
  total: number
  height: number
}

interface JobProps extends Where {
  job: Job
  picked: boolean
  marked: boolean
  words: RowWords
  onPick: (id: number) => void
  onMark: (id: number) => void
}

export const JobLine = memo(function JobLine({ job, place, total, height, picked, marked, words, onPick, onMark }: JobProps) {
  return (
    <li aria-setsize={total} aria-posinset={place + 1} className={picked ? 'vrow picked' : 'vrow'} style={at(place, height)}>
      <label className="reach">
        <input type="checkbox" tabIndex={-1} aria-label={words.mark(job.id)} checked={marked} onChange={() => onMark(job.id)} />
      </label>
      <button type="button" tabIndex={-1} aria-current={picked} onClick={() => onPick(job.id)}>
        <span className="id">{job.id}</span>
        <span className="clip" title={job.name}>
          {job.name}
        </span>
        {job.attempt > 1 && (
          <span className="t3" title={words.attempt(job.attempt)}>
            {job.attempt}×
          </span>
        )}
        <PlainPill look={lookOf(job)} t={words.state} />
      </button>
    </li>
  )
})

interface HeadProps extends Where {
  head: QueueHead
  t: Words
}

export const QueueLine = memo(function QueueLine({ head, place, total, height, t }: HeadProps) {
  const stands = told(head.stands, t)
  return (
    <li aria-setsize={total} aria-posinset={place + 1} className="vhead" style={at(place, height)}>
      <b>{head.queue === null ? t('state.noqueue') : t('state.queue', { name: head.name })}</b>
      {head.batch !== null && <span className="t3">{t('jobfile.batch', { id: head.batch })}</span>}
      {head.queue !== null && (
        <span className="t2 clip" title={stands}>
          {stands}
        </span>
      )}
    </li>
  )
})

function told(stands: Standing, t: Words): string {
  switch (stands.how) {
    case 'busy':
      return stands.gpus.length ? t('state.busyon', { gpus: stands.gpus.join(', ') }) : t('state.busy')
    case 'backoff':
      return t('state.backingoff', { long: spoken(stands.left, t) })
    case 'waits':
      return stands.reason?.text ?? t('state.queued')
    case 'stopped':
      return t('state.stoppedby', { job: stands.job })
    case 'over':
      return t('state.allover')
  }
}
