import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import type { Job } from '../api/types'
import { commonName } from '../model/jobs'
import { isBatchWatched, useWatched, watchBatch } from '../parts/bell'
import { Icon } from '../parts/icons'

export interface Filter {
  everybody: boolean // with what others run on the cards
  batch: number | null
  queue: string | null
}

export const NO_FILTER: Filter = { everybody: false, batch: null, queue: null }

export const passes = (job: Job, { batch, queue }: Filter): boolean =>
  (batch === null || job.batch === batch) && (queue === null || job.queue === queue)

interface FiltersProps {
  jobs: Job[]
  mine: number
  all: number
  filter: Filter
  onChange: (filter: Filter) => void
}

/** Whose, of which batch, of which queue. */
export function Filters({ jobs, mine, all, filter, onChange }: FiltersProps) {
  const { t } = useTranslation()
  useWatched()
  const batches = useMemo(() => named(jobs, (count) => t('people.jobs', { count })), [jobs, t])
  const queues = useMemo(() => [...new Set(jobs.map((job) => job.queue))].filter((queue) => queue !== null).sort(), [jobs])
  const whose = (everybody: boolean, label: string) => (
    <button
      type="button"
      className={`btn small${filter.everybody === everybody ? ' on' : ''}`}
      aria-pressed={filter.everybody === everybody}
      onClick={() => onChange({ ...filter, everybody })}
    >
      {label}
    </button>
  )
  return (
    <span className="row jobfilters">
      {whose(false, t('jobs.mine', { count: mine }))}
      {whose(true, t('jobs.everybody', { count: all }))}
      {batches.length > 0 && (
        <select
          aria-label={t('jobs.batch')}
          value={filter.batch ?? ''}
          onChange={(event) => onChange({ ...filter, batch: event.target.value ? Number(event.target.value) : null })}
        >
          <option value="">{t('jobs.batch')}</option>
          {batches.map(([batch, name]) => (
            <option key={batch} value={batch}>{`${batch} · ${name}`}</option>
          ))}
        </select>
      )}
      {queues.length > 0 && (
        <select
          aria-label={t('jobs.queue')}
          value={filter.queue ?? ''}
          onChange={(event) => onChange({ ...filter, queue: event.target.value || null })}
        >
          <option value="">{t('jobs.queue')}</option>
          {queues.map((queue) => (
            <option key={queue} value={queue}>
              {queue}
            </option>
          ))}
        </select>
      )}
      {filter.batch !== null && <TellEnd batch={filter.batch} />}
    </span>
  )
}

/** Asks to be told by the browser when a batch has ended. */
export function TellEnd({ batch }: { batch: number }) {
  const { t } = useTranslation()
  useWatched()
  const watched = isBatchWatched(batch)
  const label = t(watched ? 'jobs.toldend' : 'jobs.tellend')
  return (
    <button
      type="button"
      className="icon small"
      aria-pressed={watched}
      aria-label={label}
      title={label}
      onClick={(event) => {
        event.stopPropagation()
        void watchBatch(batch)
      }}
    >
      <Icon name="bell" size={12} />
    </button>
  )
}

const SHOWN_BATCHES = 50

/** The newest batches, each with the name that its jobs share, else with their number. */
function named(jobs: readonly Job[], counted: (count: number) => string): [number, string][] {
  const byBatch = new Map<number, string[]>()
  for (const job of jobs) {
    const names = byBatch.get(job.batch)
    if (names) names.push(job.name)
    else byBatch.set(job.batch, [job.name])
  }
  return [...byBatch]
    .sort(([a], [b]) => b - a)
    .slice(0, SHOWN_BATCHES)
    .map(([batch, names]) => {
      const shared = commonName(names)
      return [batch, names.every((name) => name.startsWith(shared)) ? shared.slice(0, 40) : counted(names.length)]
    })
}
