import { useQuery } from '@tanstack/react-query'
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useSearch } from 'wouter'
import { get } from '../api/call'
import type { Job, Scheduler } from '../api/types'
import { useDesk } from '../desk'
import { ACTIVE, FINAL, isOfTask, matches } from '../model/jobs'
import { Segmented } from '../parts/controls'
import { Icon } from '../parts/icons'
import { useKeys } from '../parts/keys'
import { JobPill } from '../parts/pill'
import { SegBar } from '../parts/segbar'
import { SelectionBar } from '../parts/selection'
import { StopScheduler } from './stop'

const ROW = 28
const FILTERS = ['all', 'active', 'waiting', 'failed', 'ended'] as const
type Filter = (typeof FILTERS)[number]

const HOLDS: Record<Filter, (job: Job) => boolean> = {
  all: () => true,
  active: (job) => ACTIVE.has(job.state),
  waiting: (job) => job.state === 'queued',
  failed: (job) => job.state === 'failed',
  ended: (job) => FINAL.has(job.state),
}

const RANK: Record<string, number> = { running: 0, starting: 0, stopping: 0, queued: 1 }

/** What runs, what waits, then what ended, the latest first. */
export function ordered(jobs: readonly Job[]): Job[] {
  return [...jobs].sort((a, b) => {
    const rank = (RANK[a.state] ?? 2) - (RANK[b.state] ?? 2)
    if (rank) return rank
    return FINAL.has(a.state) ? (b.ended_at ?? 0) - (a.ended_at ?? 0) || b.id - a.id : a.id - b.id
  })
}

interface ListProps {
  jobs: Job[]
  picked: number | null
  onPick: (id: number) => void
}

export function JobList({ jobs, picked, onPick }: ListProps) {
  const { t } = useTranslation()
  const { find, setFind, marked, mark } = useDesk()
  const wanted = new URLSearchParams(useSearch()).get('show')
  const [filter, setFilter] = useState<Filter>(FILTERS.find((one) => one === wanted) ?? 'all')
  const place = useRef<HTMLDivElement>(null)
  const shown = useMemo(() => ordered(jobs.filter((job) => HOLDS[filter](job) && matches(job, find))), [jobs, filter, find])
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => place.current,
    estimateSize: () => ROW,
    overscan: 12,
  })
  const at = shown.findIndex((job) => job.id === picked)
  const step = (by: number): void => {
    const next = shown[Math.max(0, Math.min(shown.length - 1, at + by))]
    if (next) onPick(next.id)
  }
  useEffect(() => {
    if (at >= 0) rows.scrollToIndex(at)
  }, [at, rows])
  const toggle = (id: number): void => {
    const next = new Set(marked)
    if (!next.delete(id)) next.add(id)
    mark(next)
  }
  useKeys({ j: () => step(1), k: () => step(-1), ' ': () => picked !== null && toggle(picked), Escape: () => mark(new Set()) })
  const chosen = jobs.filter((job) => marked.has(job.id))
  const allMarked = shown.length > 0 && shown.every((job) => marked.has(job.id))
  return (
    <section className="panel list" aria-label={t('jobs.title')}>
      <Schedulers />
      <div className="filters">
        <Segmented
          label={t('state.filter')}
          value={filter}
          choices={FILTERS.map((value) => ({ value, label: t(`filter.${value}`) }))}
          onChange={setFilter}
        />
        <span className="field">
          <Icon name="find" />
          <input
            type="search"
            aria-label={t('shell.find')}
            placeholder={t('state.find')}
            value={find}
            onChange={(event) => setFind(event.target.value)}
            onKeyDown={(event) => event.key === 'Escape' && setFind('')}
          />
        </span>
      </div>
      <div className="listhead row">
        <input
          type="checkbox"
          aria-label={t('state.markall')}
          checked={allMarked}
          onChange={() => mark(allMarked ? new Set() : new Set(shown.map((job) => job.id)))}
        />
        {t('jobs.found', { count: shown.length, total: jobs.length })}
      </div>
      {/* not a listbox: what stands in an option cannot be reached, and the boxes must be */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached; j and k move in it */}
      <div ref={place} className="scroll" tabIndex={0}>
        <ul aria-label={t('jobs.title')} style={{ height: rows.getTotalSize(), position: 'relative' }}>
          {rows.getVirtualItems().map((row) => {
            const job = shown[row.index]
            return (
              job && (
                <li
                  key={job.id}
                  aria-setsize={shown.length}
                  aria-posinset={row.index + 1}
                  className={`vrow${job.id === picked ? ' picked' : ''}`}
                  style={{ height: ROW, transform: `translateY(${row.start}px)` }}
                >
                  <input
                    type="checkbox"
                    tabIndex={-1}
                    aria-label={t('jobs.mark', { id: job.id })}
                    checked={marked.has(job.id)}
                    onChange={() => toggle(job.id)}
                  />
                  <button type="button" tabIndex={-1} aria-current={job.id === picked} onClick={() => onPick(job.id)}>
                    <span className="id">{job.id}</span>
                    <span className="clip" title={job.name}>
                      {job.name}
                    </span>
                    {job.attempt > 1 ? (
                      <span className="t3" title={t('jobs.tryn', { n: job.attempt })}>
                        {job.attempt}×
                      </span>
                    ) : (
                      <span />
                    )}
                    <JobPill job={job} />
                  </button>
                </li>
              )
            )
          })}
        </ul>
      </div>
      <SelectionBar jobs={chosen} />
    </section>
  )
}

const STATES_MS = 2000

/** Schedulers write their state a moment after the event that it is about, so while one runs it is looked at again. */
export function useSchedulers() {
  return useQuery({
    queryKey: ['compete'],
    queryFn: ({ signal }) => get<{ schedulers: Scheduler[] }>('/api/v1/compete', {}, signal),
    refetchInterval: (query) => (query.state.data?.schedulers.length ? STATES_MS : false),
  })
}

function Schedulers() {
  const { t } = useTranslation()
  const schedulers = useSchedulers().data?.schedulers ?? []
  if (schedulers.length === 0) return null
  return (
    <>
      <header>
        <h2>{t('sched.title')}</h2>
        <span className="pill">{t('sched.running', { count: schedulers.length })}</span>
      </header>
      {schedulers.map((one) => (
        <OneScheduler key={one.pid} one={one} />
      ))}
    </>
  )
}

function OneScheduler({ one }: { one: Scheduler }) {
  const { t } = useTranslation()
  return (
    <div className="sched">
      <div className="row">
        <b>{t('sched.name', { mode: t(`mode.${one.mode}`), n: one.config_index + 1 })}</b>
        <span className="mono t3">pid {one.pid}</span>
        <span className="grow" />
        <StopScheduler one={one} look="small warn">
          {t('sched.stop')}
        </StopScheduler>
      </div>
      <SegBar
        count={{
          done: one.completed_tasks,
          failed: one.failed_tasks,
          running: one.running_tasks,
          waiting: Math.max(0, one.pending_tasks),
          dropped: 0,
        }}
      />
      {one.last_error && (
        <span className="fail clip" title={one.last_error}>
          {one.failed_tasks && isOfTask(one.last_error) ? t('sched.failed', { count: one.failed_tasks }) : one.last_error}
        </span>
      )}
    </div>
  )
}
