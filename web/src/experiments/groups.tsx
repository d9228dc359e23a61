// One batch: how it stands, and its jobs folded over seeds. What failed says why at the foot.
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation } from 'wouter'
import { useActs } from '../api/acts'
import { useBlocked } from '../api/hooks'
import type { Job } from '../api/types'
import { useDesk } from '../desk'
import { jobCommand } from '../model/command'
import { span } from '../model/format'
import { elapsed, FINAL } from '../model/jobs'
import { progress, progressOf } from '../model/sweeps'
import { Act } from '../parts/act'
import { Icon } from '../parts/icons'
import { useNow } from '../parts/now'
import { JobPill, Pill } from '../parts/pill'
import { Segments, useSaid } from '../parts/segbar'
import { axes, cellFinder, type Fold, figure, folds, lookOfBatch, lookOfFold, newest, ran, SEED } from './model'
import type { Batch, Cell, Results } from './types'

const FIRST = 300 // groups that are drawn at first

interface GroupsProps {
  batch: Batch
  jobs: Job[] | undefined
  error: string
  results: Results | undefined
  metric: string
}

export function Groups({ batch, jobs, error, results, metric }: GroupsProps) {
  const { t } = useTranslation()
  const { open } = useDesk()
  const { act } = useActs()
  const blocked = useBlocked()
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set())
  const [most, setMost] = useState(FIRST)
  const last = useMemo(() => newest(jobs ?? []), [jobs])
  const groups = useMemo(() => folds(last), [last])
  const failed = last.filter((job) => job.state === 'failed')
  const running = last.filter((job) => !FINAL.has(job.state))
  const now = useNow(running.length ? 1000 : 60_000)
  const cell = useMemo(() => cellFinder(results, metric), [results, metric])
  const seeds = last.some((job) => SEED in job.params)
  const count = progressOf(batch.counts, batch.done_before)
  const said = useSaid(count)
  const toggle = (key: string): void => {
    const next = new Set(unfolded)
    if (!next.delete(key)) next.add(key)
    setUnfolded(next)
  }
  return (
    <section className="panel groups" aria-label={batch.name}>
      <div className="jobhead">
        <div className="row">
          <span className="mono t3">{batch.id}</span>
          <h2 className="title clip">{batch.name || '–'}</h2>
          <Pill look={lookOfBatch(batch)} />
          <span className="acts">
            {failed.length > 0 && (
              <Act
                icon="again"
                blocked={blocked}
                command={jobCommand('retry', ids(failed))}
                onDo={() => void act('retry', failed)}
              >
                {t('experiments.retry', { count: failed.length })}
              </Act>
            )}
            {running.length > 0 && (
              <Act
                look="warn"
                blocked={blocked}
                command={jobCommand('cancel', ids(running))}
                onDo={() => open({ kind: 'cancel', jobs: running })}
              >
                {t('experiments.cancel', { count: running.length })}
              </Act>
            )}
          </span>
        </div>
        <Segments count={count} />
        <p className="t2">{[said, shape(last)].filter(Boolean).join(' · ')}</p>
      </div>
      <div className="scroll">
        {error && <p className="note fail">{error}</p>}
        <table className="list folds">
          <thead>
            <tr>
              <th>{t(seeds ? 'experiments.folded' : 'experiments.job')}</th>
              <th>{t(seeds ? 'experiments.seeds' : 'experiments.card')}</th>
              <th>{t('experiments.state')}</th>
              <th className="num">{t('experiments.time')}</th>
              <th className="num">{metric}</th>
            </tr>
          </thead>
          <tbody>
            {groups
              .slice(0, most)
              .map((fold) =>
                seeds ? (
                  <FoldRows
                    key={fold.key}
                    fold={fold}
                    open={unfolded.has(fold.key)}
                    onFold={() => toggle(fold.key)}
                    cell={cell(fold.jobs[0])}
                    now={now}
                  />
                ) : (
                  fold.jobs.map((job) => <JobRow key={job.id} job={job} now={now} value={valueFor(cell(job), job)} />)
                ),
              )}
          </tbody>
        </table>
        {groups.length > most && (
          <button type="button" className="link older" onClick={() => setMost(most + 10 * FIRST)}>
            {t('experiments.moregroups', { count: groups.length - most })}
          </button>
        )}
      </div>
      {failed[0]?.reason?.text && (
        <footer className="why">
          <Icon name="warn" />
          <span>
            <b className="mono">{failed[0].name}</b> {failed[0].reason.text}
          </span>
        </footer>
      )}
    </section>
  )
}

const ids = (jobs: readonly Job[]): number[] => jobs.map((job) => job.id)

/** `config × algorithm × seed = 2 × 4 × 3`, where the jobs are all combinations. */
function shape(jobs: readonly Job[]): string {
  const varying = axes(jobs).filter(([, n]) => n > 1)
  if (!varying.length) return ''
  const names = varying.map(([key]) => key).join(' × ')
  const product = varying.reduce((sum, [, n]) => sum * n, 1)
  return product === jobs.length ? `${names} = ${varying.map(([, n]) => n).join(' × ')}` : names
}

const valueFor = (cell: Cell | undefined, job: Job): number | undefined => cell?.runs.find((run) => run.job === job.id)?.value

interface FoldProps {
  now: number
  fold: Fold
  open: boolean
  onFold: () => void
  cell: Cell | undefined
}

function FoldRows({ fold, open, onFold, cell, now }: FoldProps) {
  const { t } = useTranslation()
  const look = lookOfFold(fold.jobs)
  const failed = fold.jobs.filter((job) => job.state === 'failed').length
  const [main, ...rest] = [...fold.params].reverse()
  const name = main?.[1] ?? fold.jobs[0]?.name ?? ''
  const long = ran(fold.jobs, now)
  return (
    <>
      <tr className={open ? 'open' : ''}>
        <td>
          <button
            type="button"
            className="fold"
            title={fold.params.map((pair) => pair.join('=')).join(' ')}
            aria-expanded={open}
            onClick={onFold}
          >
            <Icon name={open ? 'unfold' : 'right'} size={10} />
            <b>{name}</b>
            <span className="t3">{rest.map(([, value]) => value).join(' ')}</span>
          </button>
        </td>
        <td className="seeds">
          <Segments count={progress(fold.jobs)} />
        </td>
        <td>
          <Pill look={look} />
        </td>
        <td className="num t2">
          {failed ? t('experiments.offailed', { failed, total: fold.jobs.length }) : long === null ? '–' : span(long)}
        </td>
        <td className="num strong">{cell ? figure(cell.mean) : '–'}</td>
      </tr>
      {open &&
        fold.jobs.map((job) => <JobRow key={job.id} job={job} now={now} seed={job.params[SEED]} value={valueFor(cell, job)} />)}
    </>
  )
}

function JobRow({ job, seed, now, value }: { job: Job; seed?: string; now: number; value: number | undefined }) {
  const { t } = useTranslation()
  const [, go] = useLocation()
  const { act } = useActs()
  const blocked = useBlocked()
  const long = elapsed(job, now)
  return (
    <tr className={seed === undefined ? '' : 'seed'}>
      <td className="clip" title={job.name}>
        {seed === undefined ? (
          <b>{job.name}</b>
        ) : (
          <>
            <span className="t3 mono">seed</span> {seed}
          </>
        )}
      </td>
      <td className="mono t3">{job.gpus.length ? `GPU ${job.gpus.join(',')}` : ''}</td>
      <td>
        <JobPill job={job} />
      </td>
      <td className="num t2">{long === null ? '–' : span(long)}</td>
      <td className="num">
        {value !== undefined && <span>{figure(value)} </span>}
        {value === undefined && job.attempt > 0 && (
          <button type="button" className="link" onClick={() => go(`/state/${job.id}`)}>
            {t('experiments.log')}
          </button>
        )}{' '}
        {job.state === 'failed' && (
          <button
            type="button"
            className="link"
            disabled={blocked !== undefined}
            title={blocked ?? jobCommand('retry', [job.id])}
            onClick={() => void act('retry', [job])}
          >
            {t('act.retry')}
          </button>
        )}
      </td>
    </tr>
  )
}
