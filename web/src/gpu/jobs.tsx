// Jobs of the first screen: unseen failures, what runs, what waits (a sentence per reason), what ended today.
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation } from 'wouter'
import { useActs } from '../api/acts'
import { useBlocked, useCounts, useLive } from '../api/hooks'
import type { Job } from '../api/types'
import { useDesk } from '../desk'
import { jobCommand } from '../model/command'
import { span } from '../model/format'
import { shownIds } from '../model/ids'
import { commonName, elapsed, FINAL, type Group, lookOf, matches, retryHelps, sections } from '../model/jobs'
import { copyText } from '../parts/controls'
import { Icon } from '../parts/icons'
import { useKeys } from '../parts/keys'
import { useNow } from '../parts/now'
import { JobPill } from '../parts/pill'
import { say } from '../parts/toast'
import { Verdict } from '../parts/verdict'
import { useSeenAt } from '../seen'

const AT_MOST = 200 // rows of one section; the state page has all

interface PanelProps {
  jobs: Job[]
  loaded: boolean
  whole: boolean // else only as many as a person reads
  more: number // that wait and are not listed
  error: string
}

export function JobsPanel({ jobs, loaded, whole, more, error }: PanelProps) {
  const { t } = useTranslation()
  const { find, pick, picked, marked, mark, open } = useDesk()
  const [, go] = useLocation()
  const { act } = useActs()
  const blocked = useBlocked()
  const seen = useSeenAt()
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set())
  const shown = useMemo(() => jobs.filter((job) => matches(job, find)), [jobs, find])
  const parts = useMemo(() => sections(shown, seen, new Date().setHours(0, 0, 0, 0)), [shown, seen])
  const counts = useCounts()
  const total = whole ? jobs.length : Object.values(counts).reduce((sum, count) => sum + count, 0)
  const ended = whole ? parts.ended : counts
  const rows = useMemo(
    () => [
      ...parts.unseen,
      ...parts.running,
      ...parts.waiting.flatMap((group) => (unfolded.has(group.key) ? group.jobs : group.jobs.slice(0, 1))),
    ],
    [parts, unfolded],
  )
  const chosen = (): Job[] => {
    const ids = marked.size ? marked : new Set(picked === null ? [] : [picked])
    return jobs.filter((job) => ids.has(job.id))
  }
  const step = (by: number): void => {
    const at = rows.findIndex((job) => job.id === picked)
    const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))]
    if (next) pick(next.id)
  }
  const fold = (key: string): void => {
    const next = new Set(unfolded)
    if (!next.delete(key)) next.add(key)
    setUnfolded(next)
  }
  const toggle = (id: number): void => {
    const next = new Set(marked)
    if (!next.delete(id)) next.add(id)
    mark(next)
  }
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    ' ': () => picked !== null && toggle(picked),
    Enter: () => picked !== null && go(`/state/${picked}`),
    Escape: () => mark(new Set()),
    o: () => {
      const group = parts.waiting.find((one) => one.jobs.some((job) => job.id === picked))
      if (group) fold(group.key)
    },
    x: () => !blocked && askCancel(),
    r: () => !blocked && void act('retry', chosen()),
    h: () => {
      const these = chosen()
      if (!blocked) void act(these.every((job) => job.intent === 'hold') ? 'unhold' : 'hold', these)
    },
    y: () => {
      const command = jobCommand(
        'show',
        chosen().map((job) => job.id),
      )
      void copyText(command).then((done) => done && say({ text: t('control.copiedtext', { text: command }) }))
    },
  })
  const askCancel = (): void => {
    const these = chosen().filter((job) => !FINAL.has(job.state))
    if (these.length) open({ kind: 'cancel', jobs: these })
  }
  return (
    <section className="panel" aria-label={t('jobs.title')}>
      <header>
        <h2>{t('jobs.title')}</h2>
        <span className="pill">{find ? t('jobs.found', { count: shown.length, total }) : total}</span>
        <span className="grow" />
        <span className="t3 clip hint">{t('jobs.keys')}</span>
      </header>
      <div className="scroll">
        {error && <p className="note fail">{error}</p>}
        {parts.unseen.length > 0 && (
          <Section name={t('jobs.unseen')} count={parts.unseen.length}>
            {parts.unseen.slice(0, AT_MOST).map((job) => (
              <FailedRow key={job.id} job={job} onMark={toggle} />
            ))}
          </Section>
        )}
        <Section name={t('jobs.running')} count={parts.running.length}>
          {parts.running.slice(0, AT_MOST).map((job) => (
            <JobRow key={job.id} job={job} onMark={toggle} />
          ))}
          {loaded && parts.running.length === 0 && <p className="jobrow t2">{t('jobs.nonerunning')}</p>}
        </Section>
        {parts.waitingCount > 0 && (
          <Section name={t('jobs.waiting')} count={parts.waitingCount + more}>
            {parts.waiting.slice(0, AT_MOST).map((group) => (
              <WaitingGroup
                key={group.key}
                group={group}
                all={parts.waiting.length === 1 && more === 0}
                open={unfolded.has(group.key)}
                onFold={() => fold(group.key)}
                onMark={toggle}
              />
            ))}
            {more > 0 && <p className="more t2">{t('jobs.more', { count: more })}</p>}
          </Section>
        )}
      </div>
      {marked.size > 0 && !blocked && (
        <div className="selbar">
          <b>{t('jobs.selected', { count: marked.size })}</b>
          <button type="button" className="btn small warn" onClick={askCancel}>
            {t('act.cancel')}
          </button>
          <button type="button" className="btn small" onClick={() => void act('retry', chosen())}>
            {t('act.retry')}
          </button>
          <button type="button" className="btn small" onClick={() => void act('hold', chosen())}>
            {t('act.hold')}
          </button>
          <button type="button" className="btn small" onClick={() => void act('unhold', chosen())}>
            {t('act.unhold')}
          </button>
          <button type="button" className="btn small quiet" onClick={() => mark(new Set())}>
            {t('jobs.unselect')}
          </button>
        </div>
      )}
      <footer>
        <span className="t2">{whole ? t('jobs.today') : t('jobs.inall')}</span>
        <div className="today grow">
          <span>
            <Icon name="tick" size={12} />
            <b>{ended.succeeded ?? 0}</b> {t('state.succeeded')}
          </span>
          <span>
            <Icon name="cross" size={12} />
            <b>{ended.failed ?? 0}</b> {t('state.failed')}
          </span>
          <span>
            <Icon name="ban" size={12} />
            <b>{ended.cancelled ?? 0}</b> {t('state.cancelled')}
          </span>
          <span>
            <Icon name="skip" size={12} />
            <b>{ended.skipped ?? 0}</b> {t('state.skipped')}
          </span>
        </div>
        <button type="button" className="link" onClick={() => go('/state')}>
          {t('jobs.all')}
        </button>
      </footer>
    </section>
  )
}

function Section({ name, count, children }: { name: string; count: number; children: React.ReactNode }) {
  return (
    <section className="section" aria-label={name}>
      <h3 className="gutter">
        {name}
        <b>{count}</b>
      </h3>
      <div>{children}</div>
    </section>
  )
}

function JobRow({ job, onMark, end }: { job: Job; onMark: (id: number) => void; end?: React.ReactNode }) {
  const { t } = useTranslation()
  const { picked, pick, marked } = useDesk()
  const now = useNow()
  const long = elapsed(job, now)
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: j, k and the button inside are the keyboard's way
    // biome-ignore lint/a11y/noStaticElementInteractions: the button inside is what a reader of the screen finds
    <div
      className={`jobrow${picked === job.id ? ' picked' : ''}${marked.has(job.id) ? ' marked' : ''}`}
      onClick={(event) => (event.ctrlKey || event.metaKey ? onMark(job.id) : pick(job.id))}
    >
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
      <span className="tail clip">{job.state === 'failed' ? '' : (job.reason?.text ?? job.commands.at(-1) ?? '')}</span>
      {end ?? <span />}
    </div>
  )
}

function FailedRow({ job, onMark }: { job: Job; onMark: (id: number) => void }) {
  const { t } = useTranslation()
  const [, go] = useLocation()
  const { act } = useActs()
  const blocked = useBlocked()
  return (
    <>
      <JobRow
        job={job}
        onMark={onMark}
        end={
          <span className="row">
            <button type="button" className="btn small" onClick={() => go(`/state/${job.id}`)}>
              {t('jobs.seeerror')}
            </button>
            {retryHelps(job) && (
              <button
                type="button"
                className="btn small"
                disabled={blocked !== undefined}
                title={blocked}
                onClick={(event) => {
                  event.stopPropagation()
                  void act('retry', [job])
                }}
              >
                <Icon name="again" size={12} />
                {t('act.retry')}
              </button>
            )}
          </span>
        }
      />
      {job.reason?.text && <p className="whyline">{job.reason.text}</p>}
    </>
  )
}

interface GroupProps {
  group: Group
  all: boolean // nothing waits for another reason
  open: boolean
  onFold: () => void
  onMark: (id: number) => void
}

function WaitingGroup({ group, all, open, onFold, onMark }: GroupProps) {
  const { t } = useTranslation()
  const { cards } = useLive()
  const { jobs, reason } = group
  const [first] = jobs
  if (!first) return null
  const never = reason?.code.startsWith('impossible') || reason?.code === 'no_engine'
  const asks = first.gpu_request[0] ?? 0
  return (
    <>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the button inside is the keyboard's way, and o */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the button inside is what a reader of the screen finds */}
      <div className="group" onClick={onFold}>
        <button
          type="button"
          className={`count${never ? ' fail' : ''}`}
          style={{ border: 0 }}
          aria-expanded={open}
          aria-label={t('jobs.unfold', { count: jobs.length })}
        >
          {jobs.length}
        </button>
        <span className="who">
          <b className="strong">
            {all && (group.key === 'no_engine' || group.key === 'on_hold')
              ? t('jobs.allwaiting')
              : commonName(jobs.map((job) => job.name))}
          </b>
          <span className="ids">
            {jobs.length > 40 ? `#${first.id} …` : shownIds(jobs.map((job) => job.id))}
            {asks > 1 && ` ×${asks}`}
          </span>
          {(lookOf(first) === 'backoff' || lookOf(first) === 'held') && <JobPill job={first} />}
          {reason?.gpus?.length && cards ? (
            <Verdict
              cards={cards.gpus}
              refused={
                new Map(cards.gpus.map((card) => [card.index, reason.gpus?.find((one) => one.uuid === card.uuid) ?? null]))
              }
            />
          ) : null}
        </span>
        <span className="sentence">{sentence(group, t)}</span>
      </div>
      {open && jobs.slice(0, AT_MOST).map((job) => <JobRow key={job.id} job={job} onMark={onMark} />)}
    </>
  )
}

/** One sentence for all of the group; the server's, but where several wait in one queue. */
function sentence({ jobs, reason }: Group, t: (key: string, values?: Record<string, unknown>) => string): string {
  if (!reason) return ''
  if (reason.code === 'behind' && jobs.length > 1) return t('jobs.behind', { queue: jobs[0]?.queue, job: reason.params.job })
  return reason.text ?? reason.code
}
