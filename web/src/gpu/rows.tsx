// Rows of the jobs panel: one job, a failure with its reason, jobs that wait for one thing or are of one sweep, others' processes.
import { createContext, type DragEvent, type ReactNode, use } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation } from 'wouter'
import { useActs } from '../api/acts'
import { type Known, useBlocked, useLive } from '../api/hooks'
import type { Job } from '../api/types'
import { newJob, useDesk } from '../desk'
import { shown } from '../model/ansi'
import { jobCommand, like } from '../model/command'
import { clock, gib, span } from '../model/format'
import { shownIds } from '../model/ids'
import { doneShare, elapsed, endOf, type Group, groupName, lookOf, OF_ALL, reasonsOf, retryHelps } from '../model/jobs'
import { type Foreign, hueOf, initialsOf } from '../model/people'
import { progress } from '../model/sweeps'
import { Act } from '../parts/act'
import { Icon } from '../parts/icons'
import { Meter } from '../parts/meter'
import { JobPill } from '../parts/pill'
import { SegBar } from '../parts/segbar'
import { Verdict } from '../parts/verdict'
import { Why } from '../parts/why'
import { markJobs } from '../seen'
import { TellEnd } from './filters'

export const AT_MOST = 200 // rows of one section; the state page has all
const NAMED_IDS = 40
const SENTENCES = 3

/** What all rows of a panel share. */
export interface Rows {
  now: number
  tails: ReadonlyMap<number, string>
  ends: ReadonlyMap<number, number> // when running jobs end, about
  toggle: (jobs: readonly Job[]) => void
  drop: (moved: number, onto: number) => void
}

export const RowsContext = createContext<Rows>({ now: 0, tails: new Map(), ends: new Map(), toggle: () => {}, drop: () => {} })

interface RowProps {
  job: Job
  row?: string // what the box that it stands in knows it by
  end?: ReactNode
  movable?: boolean // by its grip, in its queue
}

const DRAGGED = 'application/x-jostle-job'

export function JobRow({ job, row, end, movable }: RowProps) {
  const { t } = useTranslation()
  const { picked, pick, marked } = useDesk()
  const { now, tails, toggle, drop } = use(RowsContext)
  const long = elapsed(job, now)
  const why = job.state === 'failed' ? '' : job.reason?.text // what is remarkable of a run comes before what it prints
  const said = why ?? tails.get(job.id) ?? job.commands.at(-1) ?? ''
  const over = (event: DragEvent): void => {
    if (event.dataTransfer.types.includes(DRAGGED)) event.preventDefault()
  }
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: j, k and the button inside are the keyboard's way
    // biome-ignore lint/a11y/noStaticElementInteractions: the button inside is what a reader of the screen finds
    <div
      data-row={row}
      className={`jobrow${picked === job.id ? ' picked' : ''}${marked.has(job.id) ? ' marked' : ''}`}
      onClick={(event) => (event.ctrlKey || event.metaKey ? toggle([job]) : pick(job.id))}
      onDragOver={movable ? over : undefined}
      onDrop={movable ? (event) => drop(Number(event.dataTransfer.getData(DRAGGED)), job.id) : undefined}
    >
      <Tick jobs={[job]} label={t('jobs.mark', { id: job.id })} />
      <button type="button" className="id" aria-label={t('jobs.pick', { id: job.id })} aria-pressed={picked === job.id}>
        {job.id}
      </button>
      <span className="name clip" title={job.name}>
        {job.name}
      </span>
      <JobPill job={job} />
      <span className="where clip" title={job.gpus.join(', ')}>
        {job.gpus.join(',') || (job.gpu_request[0] === 0 ? 'CPU' : '–')}
      </span>
      <span className="long">
        {long === null ? '' : span(long)}
        {job.attempt > 1 && <span className="t3"> {t('jobs.try', { n: job.attempt })}</span>}
      </span>
      <Left job={job} />
      <span className={`tail clip${why === undefined && tails.has(job.id) ? ' mono' : ''}`} title={said}>
        {said}
      </span>
      {end ?? (movable ? <Grip job={job} /> : <span />)}
    </div>
  )
}

/** How far it is and how much is left, where that can be told. */
function Left({ job }: { job: Job }) {
  const { t } = useTranslation()
  const { now } = use(RowsContext)
  const end = job.state === 'running' ? endOf(job) : null
  if (!end) return <span className="left" />
  const share = doneShare(job, now)
  const long = span(Math.max(0, end.at - now / 1000))
  const text = t(end.latest ? 'jobs.leftmost' : 'jobs.left', { long })
  return (
    <span className="left" title={t(end.latest ? 'jobs.limit' : 'jobs.about', { at: clock(end.at * 1000) })}>
      {share !== null && (
        <Meter
          thin
          label={t('jobs.progress', { id: job.id })}
          parts={[{ hue: 'you', share }]}
          text={`${Math.round(share * 100)}%`}
        />
      )}
      <span className="t3">{text}</span>
    </span>
  )
}

function Grip({ job }: { job: Job }) {
  const { t } = useTranslation()
  const { pick } = useDesk()
  if (useBlocked()) return <span />
  const label = t('jobs.move', { id: job.id })
  return (
    <button
      type="button"
      className="grip"
      draggable
      aria-label={label}
      title={label}
      onFocus={() => pick(job.id)}
      onDragStart={(event) => {
        event.dataTransfer.setData(DRAGGED, String(job.id))
        event.dataTransfer.effectAllowed = 'move'
      }}
    >
      <Icon name="grip" size={12} />
    </button>
  )
}

function Tick({ jobs, label }: { jobs: Job[]; label: string }) {
  const { marked } = useDesk()
  const { toggle } = use(RowsContext)
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: only keeps the row from being picked as well
    <label className="reach" onClick={(event) => event.stopPropagation()}>
      <input
        type="checkbox"
        className="tick"
        tabIndex={-1}
        aria-label={label}
        checked={jobs.every((job) => marked.has(job.id))}
        onChange={() => toggle(jobs)}
      />
    </label>
  )
}

export function FailedRow({ job }: { job: Job }) {
  const { t } = useTranslation()
  const [, go] = useLocation()
  const { open } = useDesk()
  const { act } = useActs()
  const blocked = useBlocked()
  const helps = retryHelps(job)
  return (
    <>
      <JobRow
        job={job}
        end={
          // biome-ignore lint/a11y/useKeyWithClickEvents: only keeps the row from being picked as well
          // biome-ignore lint/a11y/noStaticElementInteractions: the buttons inside are what is pressed
          <span className="row" onClick={(event) => event.stopPropagation()}>
            <button type="button" className="btn small" onClick={() => go(`/state/${job.id}`)}>
              {t('jobs.seeerror')}
            </button>
            {helps ? (
              <Act
                look="small"
                icon="again"
                blocked={blocked}
                command={jobCommand('retry', [job.id])}
                onDo={() => void act('retry', [job])}
              >
                {t('act.retry')}
              </Act>
            ) : (
              <button
                type="button"
                className="btn small"
                disabled={blocked !== undefined}
                title={blocked}
                onClick={() => {
                  markJobs([job.id])
                  open(newJob(like(job)))
                }}
              >
                <Icon name="again" size={12} />
                {t('act.editretry')}
              </button>
            )}
          </span>
        }
      />
      {job.reason?.text && (
        <p className="whyline">
          <Why reason={job.reason} />
        </p>
      )}
    </>
  )
}

interface GroupProps {
  group: Group
  row: string
  alone?: boolean // nothing waits for another reason
  open: boolean
  onFold: () => void
}

/** Several jobs as one row: of a sweep with how far it is, and why they wait. */
export function GroupRow({ group, row, alone, open, onFold }: GroupProps) {
  const { t } = useTranslation()
  const { cards } = useLive('cards')
  const { picked, marked } = useDesk()
  const { jobs, reason, sweep } = group
  const [first] = jobs
  if (!first) return null
  const waits = first.state === 'queued'
  const never = reason?.code.startsWith('impossible') || reason?.code === 'no_engine'
  const asks = first.gpu_request[0] ?? 0
  const held = !open && jobs.some((job) => job.id === picked)
  return (
    <>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the button inside is the keyboard's way, and o */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the button inside is what a reader of the screen finds */}
      <div
        data-row={row}
        className={`group${held ? ' picked' : ''}${jobs.every((job) => marked.has(job.id)) ? ' marked' : ''}`}
        onClick={onFold}
      >
        <Tick jobs={jobs} label={t('jobs.markgroup', { count: jobs.length })} />
        <button
          type="button"
          className={`count${never ? ' fail' : waits ? '' : ' runs'}`}
          aria-expanded={open}
          aria-label={t(waits ? 'jobs.unfold' : 'jobs.unfoldrunning', { count: jobs.length })}
        >
          {jobs.length}
        </button>
        <span className="who">
          <b className="strong">
            {alone && OF_ALL.has(group.key)
              ? t('jobs.allwaiting')
              : [groupName(jobs) ?? t('jobs.different', { count: jobs.length }), sweep?.axes].filter(Boolean).join(' · ')}
          </b>
          <span className="ids">
            {jobs.length > NAMED_IDS ? `#${first.id} …` : shownIds(jobs.map((job) => job.id))}
            {asks > 1 && ` ×${asks}`}
          </span>
          {(lookOf(first) === 'backoff' || lookOf(first) === 'held') && <JobPill job={first} />}
          {sweep && <TellEnd batch={sweep.batch} />}
          {sweep && <SegBar count={progress(sweep.jobs)} />}
          {waits && reason?.gpus?.length && cards ? (
            <Verdict
              cards={cards.gpus}
              refused={
                new Map(cards.gpus.map((card) => [card.index, reason.gpus?.find((one) => one.uuid === card.uuid) ?? null]))
              }
            />
          ) : null}
        </span>
        <span className="sentence">{waits && <Sentences group={group} />}</span>
      </div>
      {open && jobs.slice(0, AT_MOST).map((job) => <JobRow key={job.id} job={job} movable={waits} />)}
    </>
  )
}

/** Why they wait: the server's sentence; one for all that wait in one queue; of a sweep each reason once. */
function Sentences({ group: { jobs, reason, sweep } }: { group: Group }) {
  const { t } = useTranslation()
  const { ends } = use(RowsContext)
  if (!reason) return null
  if (!sweep) {
    if (reason.code === 'behind' && jobs.length > 1) return behind(jobs[0]?.queue ?? '', Number(reason.params.job), ends, t)
    return <Why reason={reason} />
  }
  const reasons = reasonsOf(jobs)
  if (reasons.length === 1) return <Why reason={reason} />
  return (
    <ul>
      {reasons.slice(0, SENTENCES).map((one) => (
        <li key={one.reason.text ?? one.reason.code}>
          <b className="strong">{one.count}</b> <Why reason={one.reason} />
        </li>
      ))}
      {reasons.length > SENTENCES && <li>{t('jobs.otherreasons', { count: reasons.length - SENTENCES })}</li>}
    </ul>
  )
}

function behind(
  queue: string,
  job: number,
  ends: ReadonlyMap<number, number>,
  t: (key: string, values: Record<string, unknown>) => string,
): string {
  const end = ends.get(job)
  return end === undefined ? t('jobs.behind', { queue, job }) : t('jobs.behinduntil', { queue, job, at: clock(end * 1000) })
}

export function ForeignRow({ one, row, known }: { one: Foreign; row: string; known: Known | undefined }) {
  const { t } = useTranslation()
  const { open } = useDesk()
  const { now } = use(RowsContext)
  return (
    <div className="jobrow foreign" data-row={row}>
      <span />
      <button
        type="button"
        className="id"
        aria-label={t('card.open', { index: one.card })}
        onClick={() => open({ kind: 'card', index: one.card })}
      >
        <span className={`chip hue-${hueOf(one.person)}`}>{initialsOf(one.person)}</span>
      </button>
      <span className="name clip">
        {one.person}:{one.pid}
      </span>
      <span />
      <span className="where">{one.card}</span>
      <span className="long">{known?.since ? span((now - known.since) / 1000) : ''}</span>
      <span className="left" />
      <span className="tail clip mono">
        {one.mib === null ? '' : `${gib(one.mib)}G `}
        {shown(known?.command || one.name || '').text}
      </span>
      <span />
    </div>
  )
}
