// Jobs of the first screen: unseen failures, what runs, what waits (a sentence per reason), what ended today.
import { type ReactNode, type RefObject, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useLocation } from 'wouter'
import { useActs } from '../api/acts'
import { useBlocked, useCounts, useLive, useProcesses } from '../api/hooks'
import { useTails } from '../api/tails'
import type { Job } from '../api/types'
import { useDesk } from '../desk'
import { jobCommand } from '../model/command'
import { FINAL, type Group, groupName, matches, meant, sections } from '../model/jobs'
import { foreign, isFound } from '../model/people'
import { droppedOn, stepped } from '../model/place'
import { useBelow } from '../parts/below'
import { copyText } from '../parts/controls'
import { Icon, type IconName } from '../parts/icons'
import { useKeys } from '../parts/keys'
import { useNow } from '../parts/now'
import { SelectionBar } from '../parts/selection'
import { say } from '../parts/toast'
import { useSeen } from '../seen'
import { Filters, NO_FILTER, passes } from './filters'
import { AT_MOST, FailedRow, ForeignRow, GroupRow, JobRow, RowsContext } from './rows'

const UNSEEN_ROWS = 3 // more of them would push away what runs and waits

interface PanelProps {
  jobs: Job[]
  loaded: boolean
  whole: boolean // else only as many as a person reads
  more: number // that wait and are not listed
  error: string
}

export function JobsPanel({ jobs, loaded, whole, more, error }: PanelProps) {
  const { t } = useTranslation()
  const now = useNow()
  const [, go] = useLocation()
  const { find, marked } = useDesk()
  const { cards } = useLive('cards')
  const processes = useProcesses()
  const seen = useSeen()
  const [filter, setFilter] = useState(NO_FILTER)
  const shown = useMemo(() => jobs.filter((job) => passes(job, filter) && matches(job, find)), [jobs, filter, find])
  const parts = useMemo(() => sections(shown, seen, new Date().setHours(0, 0, 0, 0), jobs), [shown, seen, jobs])
  const unseen = parts.unseen.slice(0, UNSEEN_ROWS)
  const others = useMemo(() => foreign(cards?.gpus ?? []), [cards])
  const shownOthers = filter.everybody || find ? others.filter((one) => isFound(one, find)) : []
  const running = useMemo(() => parts.running.flatMap((group) => group.jobs).filter((job) => job.state === 'running'), [parts])
  const tails = useTails(running)
  const { unfolded, fold, toggle, drop } = useJobKeys(jobs, [
    ...unseen.map((job) => ({ key: `${job.id}`, jobs: [job], reason: job.reason, sweep: null })),
    ...parts.running,
    ...parts.waiting,
  ])
  const ends = useMemo(
    () => new Map(jobs.flatMap((job) => (job.estimate?.ends_at == null ? [] : [[job.id, job.estimate.ends_at] as const]))),
    [jobs],
  )
  const rows = useMemo(() => ({ now, tails, ends, toggle, drop }), [now, tails, ends, toggle, drop])
  const counts = useCounts()
  const known = whole ? jobs.length : Object.values(counts ?? {}).reduce((sum, count) => sum + count, 0)
  const total = Math.max(known, jobs.length) // the counts may come a moment later
  const box = useRef<HTMLDivElement>(null)
  const group = (one: Group, alone = false) =>
    one.jobs.length === 1 && one.jobs[0]?.state !== 'queued' ? (
      <JobRow key={one.key} row={rowOf(one)} job={one.jobs[0] as Job} />
    ) : (
      <GroupRow
        key={one.key}
        row={rowOf(one)}
        group={one}
        alone={alone}
        open={unfolded.has(one.key)}
        onFold={() => fold(one.key)}
      />
    )
  return (
    <RowsContext value={rows}>
      <section className={`panel${ends.size ? ' timed' : ''}`} aria-label={t('jobs.title')}>
        <header>
          <h2>{t('jobs.title')}</h2>
          <Filters jobs={jobs} mine={total} all={total + others.length} filter={filter} onChange={setFilter} />
          {find && <span className="pill">{t('jobs.found', { count: shown.length, total })}</span>}
          <span className="grow" />
          <span className="t3 clip hint">{t('jobs.keys')}</span>
        </header>
        <div className="scroll" ref={box}>
          {error && <p className="note fail">{error}</p>}
          {parts.unseen.length > 0 && (
            <Section name={t('jobs.unseen')} count={parts.unseen.length} told={parts.unseen.length === 1}>
              {unseen.map((job) => (
                <FailedRow key={job.id} job={job} />
              ))}
              {parts.unseen.length > unseen.length && (
                <p className="more">
                  <Link href="/state?show=failed">{t('jobs.unseenmore', { count: parts.unseen.length - unseen.length })}</Link>
                </p>
              )}
            </Section>
          )}
          <Section name={t('jobs.running')} count={loaded ? parts.runningCount : '–'}>
            {parts.running.slice(0, AT_MOST).map((one) => group(one))}
            {loaded && parts.runningCount === 0 && <p className="jobrow t2">{t('jobs.nonerunning')}</p>}
          </Section>
          {parts.waitingCount > 0 && (
            <Section name={t('jobs.waiting')} count={parts.waitingCount + more}>
              {parts.waiting.slice(0, AT_MOST).map((one) => group(one, parts.waiting.length === 1 && more === 0))}
              {more > 0 && (
                <p className="more t2" data-row={MORE}>
                  {t('jobs.more', { count: more })}
                </p>
              )}
            </Section>
          )}
          {shownOthers.length > 0 && (
            <Section name={t('jobs.others')} count={shownOthers.length}>
              {shownOthers.slice(0, AT_MOST).map((one) => (
                <ForeignRow
                  key={`${one.card}.${one.pid}`}
                  row={`${one.card}.${one.pid}`}
                  one={one}
                  known={processes.get(one.pid)}
                />
              ))}
            </Section>
          )}
        </div>
        <Below box={box} running={parts.running} waiting={parts.waiting} more={more} others={shownOthers} />
        <SelectionBar jobs={jobs.filter((job) => marked.has(job.id))} />
        <footer>
          <span className="t2">{whole ? t('jobs.today') : t('jobs.inall')}</span>
          <Ended counts={whole ? parts.ended : counts} />
          <button type="button" className="link" onClick={() => go('/state')}>
            {t('jobs.all')}
          </button>
        </footer>
      </section>
    </RowsContext>
  )
}

const MORE = 'more'
const rowOf = (group: Group): string => `${group.jobs[0]?.state === 'queued' ? 'waits' : 'runs'}|${group.key}`

interface BelowProps {
  box: RefObject<HTMLElement | null>
  running: readonly Group[]
  waiting: readonly Group[]
  more: number // that wait and are not listed
  others: readonly { card: number; pid: number }[]
}

/** What the panel has no room for, so that nothing is hidden without a word: how many, for how many reasons, and which. */
function Below({ box, running, waiting, more, others }: BelowProps) {
  const { t } = useTranslation()
  const [, go] = useLocation()
  const below = useBelow(box)
  const hidden = (all: readonly Group[]): Group[] => all.filter((one, at) => at >= AT_MOST || below.has(rowOf(one)))
  const count = (groups: readonly Group[]): number => groups.reduce((sum, one) => sum + one.jobs.length, 0)
  const runs = hidden(running)
  const waits = hidden(waiting)
  const unlisted = below.has(MORE) ? more : 0
  const foreign = others.filter((one, at) => at >= AT_MOST || below.has(`${one.card}.${one.pid}`)).length
  const said = [
    runs.length > 0 && t('jobs.belowrunning', { count: count(runs) }),
    waits.length + unlisted > 0 &&
      t('jobs.belowwaiting', { count: count(waits) + unlisted, reasons: t('jobs.reasons', { count: waits.length }) }),
    foreign > 0 && t('jobs.belowothers', { count: foreign }),
  ].filter(Boolean)
  if (!said.length) return null
  const show = (): void => {
    const div = box.current
    if (below.size && div) div.scrollBy({ top: div.clientHeight * 0.8 })
    else go('/state')
  }
  return (
    <button type="button" className="below" onClick={show}>
      <Icon name="lower" size={12} />
      <span className="nowrap">{said.join(' · ')}</span>
      <span className="t3 clip">{[...runs, ...waits].map((one) => groupName(one.jobs) ?? one.jobs[0]?.name).join(', ')}</span>
    </button>
  )
}

interface SectionProps {
  name: string
  count: ReactNode
  told?: boolean // on a phone the notice above the cards says all of it
  children: ReactNode
}

function Section({ name, count, told, children }: SectionProps) {
  return (
    <section className={told ? 'section told' : 'section'} aria-label={name}>
      <h3 className="gutter">
        {name}
        <b>{count}</b>
      </h3>
      <div>{children}</div>
    </section>
  )
}

const ENDS: [string, IconName][] = [
  ['succeeded', 'tick'],
  ['failed', 'cross'],
  ['cancelled', 'ban'],
  ['skipped', 'skip'],
]

function Ended({ counts }: { counts: Record<string, number> | undefined }) {
  const { t } = useTranslation()
  return (
    <div className="today grow">
      {ENDS.map(([state, icon]) => (
        <span key={state}>
          <Icon name={icon} size={12} />
          <b>{counts ? (counts[state] ?? 0) : '–'}</b> {t(`state.${state}`)}
        </span>
      ))}
    </div>
  )
}

/** What keys do to the rows. A folded row stands for all of its jobs. */
function useJobKeys(jobs: readonly Job[], groups: readonly Group[]) {
  const { t } = useTranslation()
  const [, go] = useLocation()
  const { pick, picked, marked, mark, open } = useDesk()
  const { act, move } = useActs()
  const blocked = useBlocked()
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set())
  const at = groups.find((one) => one.jobs.some((job) => job.id === picked))
  const isFolded = (one: Group): boolean => one.jobs.length > 1 && !unfolded.has(one.key)
  const ids = groups.flatMap((one) => (isFolded(one) ? one.jobs.slice(0, 1) : one.jobs).map((job) => job.id))

  const row = at && isFolded(at) ? at.jobs : jobs.filter((job) => job.id === picked)
  const chosen = (): Job[] => {
    if (marked.size) return jobs.filter((job) => marked.has(job.id))
    return at && isFolded(at) ? meant(at) : row
  }
  const fold = (key: string): void => {
    const next = new Set(unfolded)
    if (!next.delete(key)) next.add(key)
    setUnfolded(next)
  }
  const toggle = (these: readonly Job[]): void => {
    const next = new Set(marked)
    const all = these.every((job) => next.has(job.id))
    for (const job of these) all ? next.delete(job.id) : next.add(job.id)
    mark(next)
  }
  const drop = (moved: number, onto: number): void => {
    const to = droppedOn(jobs, moved, onto)
    if (to && !blocked) void move(moved, to)
  }
  const step = (by: number): void => {
    const folded = at && isFolded(at) ? at.jobs[0]?.id : picked
    const next = ids[Math.max(0, Math.min(ids.length - 1, ids.indexOf(folded ?? -1) + by))]
    if (next !== undefined) pick(next)
  }
  const nudge = (by: 1 | -1): unknown => {
    const to = picked === null || blocked ? null : stepped(jobs, picked, by)
    return to ? void move(picked as number, to) : false
  }
  const cancel = (): void => {
    const these = chosen().filter((job) => !FINAL.has(job.state))
    if (these.length) open({ kind: 'cancel', jobs: these })
  }
  const hold = (): void => {
    const these = chosen().filter((job) => job.state === 'queued')
    if (these.length) void act(these.every((job) => job.intent === 'hold') ? 'unhold' : 'hold', these)
  }
  const retry = (): void => {
    const these = chosen().filter((job) => FINAL.has(job.state))
    if (these.length) void act('retry', these)
  }
  const copy = (): void => {
    const command = jobCommand(
      'show',
      chosen().map((job) => job.id),
    )
    void copyText(command).then((done) => done && say({ text: t('control.copiedtext', { text: command }) }))
  }
  useKeys({
    j: () => step(1),
    k: () => step(-1),
    ' ': () => row.length > 0 && toggle(row),
    Enter: () => picked !== null && go(`/state/${picked}`),
    Escape: () => (marked.size ? mark(new Set()) : false),
    o: () => at && at.jobs.length > 1 && fold(at.key),
    x: () => !blocked && cancel(),
    r: () => !blocked && retry(),
    h: () => !blocked && hold(),
    y: copy,
    'Alt ArrowUp': () => nudge(-1),
    'Alt ArrowDown': () => nudge(1),
  })
  return { unfolded, fold, toggle, drop }
}
