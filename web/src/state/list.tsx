import { useQuery } from '@tanstack/react-query'
import { memo, type RefObject, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useSearch } from 'wouter'
import { get } from '../api/call'
import type { Job, Scheduler } from '../api/types'
import { useDesk } from '../desk'
import { ACTIVE, FINAL, matches } from '../model/jobs'
import { byQueue, flat, type Line } from '../model/lines'
import { Segmented } from '../parts/controls'
import { Icon } from '../parts/icons'
import { useKeys } from '../parts/keys'
import { SegBar } from '../parts/segbar'
import { SelectionBar } from '../parts/selection'
import { showRow, slot, useWindow } from '../parts/window'
import { JobLine, QueueLine, rowWords, useRowHeight, type Words } from './rows'
import { StopScheduler } from './stop'

const FILTERS = ['all', 'active', 'waiting', 'failed', 'ended'] as const
type Filter = (typeof FILTERS)[number]

const HOLDS: Record<Filter, (job: Job) => boolean> = {
  all: () => true,
  active: (job) => ACTIVE.has(job.state),
  waiting: (job) => job.state === 'queued',
  failed: (job) => job.state === 'failed',
  ended: (job) => FINAL.has(job.state),
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
  const shown = useMemo(() => jobs.filter((job) => HOLDS[filter](job) && matches(job, find)), [jobs, filter, find])
  const queued = useMemo(() => jobs.some((job) => job.queue !== null), [jobs])
  const [way, setWay] = useWay(queued)
  const lines = useMemo(() => (way === 'queues' ? byQueue(shown, jobs) : flat(shown)), [way, shown, jobs])
  const at = useMemo(() => lines.findIndex((line) => line.job?.id === picked), [lines, picked])
  const step = (by: 1 | -1): void => {
    let next = at + by
    while (lines[next]?.head) next += by
    const job = lines[next]?.job
    if (job) onPick(job.id)
  }
  const height = useRowHeight()
  useEffect(() => {
    if (at >= 0 && place.current) showRow(place.current, at, height)
  }, [at, height])
  const toggle = (id: number): void => {
    const next = new Set(marked)
    if (!next.delete(id)) next.add(id)
    mark(next)
  }
  const acts = useRef({ toggle, onPick })
  acts.current = { toggle, onPick }
  const [still] = useState(() => ({
    pick: (id: number): void => acts.current.onPick(id),
    mark: (id: number): void => acts.current.toggle(id),
  }))
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
        <label className="reach">
          <input
            type="checkbox"
            aria-label={t('state.markall')}
            checked={allMarked}
            onChange={() => mark(allMarked ? new Set() : new Set(shown.map((job) => job.id)))}
          />
        </label>
        <span className="grow">{t('jobs.found', { count: shown.length, total: jobs.length })}</span>
        {queued && (
          <Segmented
            label={t('state.way')}
            value={way}
            choices={(['queues', 'flat'] as const).map((value) => ({ value, label: t(`state.by.${value}`) }))}
            onChange={setWay}
          />
        )}
      </div>
      {/* not a listbox: what stands in an option cannot be reached, and the boxes must be */}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached; j and k move in it */}
      <div ref={place} className="scroll" tabIndex={0}>
        <Lines lines={lines} picked={picked} marked={marked} place={place} t={t} onPick={still.pick} onMark={still.mark} />
      </div>
      <SelectionBar jobs={chosen} />
    </section>
  )
}

interface LinesProps {
  lines: readonly Line[]
  picked: number | null
  marked: ReadonlySet<number>
  place: RefObject<HTMLElement | null> // what scrolls
  t: Words
  onPick: (id: number) => void
  onMark: (id: number) => void
}

/** Alone, so that scrolling renders nothing else. */
const Lines = memo(function Lines({ lines, picked, marked, place, t, onPick, onMark }: LinesProps) {
  const height = useRowHeight()
  const seen = useWindow(place, height, lines.length)
  const words = useMemo(() => rowWords(t), [t])
  return (
    <ul aria-label={t('jobs.title')} style={{ height: lines.length * height, position: 'relative' }}>
      {lines.slice(seen.first, seen.last).map((line, i) => {
        const where = { place: seen.first + i, total: lines.length, height }
        const key = slot(where.place, seen)
        if (line.head) return <QueueLine key={key} head={line.head} t={t} {...where} />
        const { id } = line.job
        const acts = { onPick, onMark, words }
        return <JobLine key={key} job={line.job} picked={id === picked} marked={marked.has(id)} {...acts} {...where} />
      })}
    </ul>
  )
})

type Way = 'queues' | 'flat'
const WAY = 'jostle.state.by'

/** By queues where there are some, unless the person has chosen. */
function useWay(queued: boolean): [Way, (way: Way) => void] {
  const [chosen, setChosen] = useState(() => localStorage.getItem(WAY))
  const way = !queued || chosen === 'flat' ? 'flat' : 'queues'
  return [
    way,
    (next) => {
      localStorage.setItem(WAY, next)
      setChosen(next)
    },
  ]
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
          {one.last_error_kind === 'task' && one.failed_tasks
            ? t('sched.failed', { count: one.failed_tasks })
            : one.last_error_kind === 'settings'
              ? t('sched.settings', { what: one.last_error })
              : one.last_error}
        </span>
      )}
    </div>
  )
}
