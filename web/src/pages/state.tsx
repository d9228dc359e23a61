// Jobs and schedulers on the left, the log of one in the middle, its story on the right.
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation, useParams } from 'wouter'
import { useActs } from '../api/acts'
import { useAllJobs, useBlocked, useJobs, useStory } from '../api/hooks'
import type { Job, Run } from '../api/types'
import { newJob, useDesk } from '../desk'
import { LogPanel } from '../log/panel'
import { type JobAct, jobCommand, like, moveCommand } from '../model/command'
import { ACTIVE, FINAL, resizable, retryHelps } from '../model/jobs'
import { stepped } from '../model/place'
import { Act } from '../parts/act'
import { Icon } from '../parts/icons'
import { useKeys } from '../parts/keys'
import { JobPill } from '../parts/pill'
import { Why } from '../parts/why'
import { markJobs } from '../seen'
import { JobList } from '../state/list'
import { StoryPanel } from '../state/story'

export default function State() {
  const { t } = useTranslation()
  const [, go] = useLocation()
  const { id } = useParams<{ id?: string }>()
  const { picked, pick } = useDesk()
  const short = useJobs().data?.jobs
  const jobs = useAllJobs().data?.jobs ?? short ?? []
  const named = id && /^\d+$/.test(id) ? Number(id) : null
  useEffect(() => {
    if (named !== null) pick(named)
  }, [named, pick])
  const job = jobs.find((one) => one.id === (named ?? picked))
  const choose = (next: number): void => {
    pick(next)
    go(`/state/${next}`, { replace: true })
  }
  return (
    <div className="state">
      <h1 className="sr">{t('page.state')}</h1>
      <JobList jobs={jobs} picked={job?.id ?? null} onPick={choose} />
      {job ? (
        <OneJob key={job.id} job={job} jobs={jobs} />
      ) : (
        <section className="panel mid alone">
          <p className="note">{jobs.length ? t('state.pick') : t('state.nojobs')}</p>
        </section>
      )}
    </div>
  )
}

function OneJob({ job, jobs }: { job: Job; jobs: readonly Job[] }) {
  const { t } = useTranslation()
  const { data: story } = useStory(job.id)
  const [run, setRun] = useState<number | null>(null)
  const runs = story?.runs ?? []
  const shown = run ?? runs.at(-1)?.n ?? null
  const step = (by: number): void => {
    const at = runs.findIndex((one) => one.n === shown)
    const next = runs[at + by]
    if (next) setRun(next.n)
  }
  const broken = job.state === 'failed'
  useEffect(() => {
    if (broken) markJobs([job.id])
  }, [broken, job.id])
  useKeys({ '[': () => step(-1), ']': () => step(1) })
  return (
    <>
      <section className="panel mid" aria-label={`#${job.id}`}>
        <div className="jobhead">
          <div className="row" style={{ flexWrap: 'wrap' }}>
            <span className="mono t3">#{job.id}</span>
            <h2>{job.name}</h2>
            <JobPill job={job} />
            <JobActs job={job} jobs={jobs} />
          </div>
          {job.reason?.text && (
            <p className="t2">
              <Why reason={job.reason} />
            </p>
          )}
          {runs.length > 0 && (
            <div className="tabs" role="tablist" aria-label={t('state.tries')}>
              {runs.map((one) => (
                <button key={one.n} type="button" role="tab" aria-selected={one.n === shown} onClick={() => setRun(one.n)}>
                  <RunMark run={one} />
                  {t('jobs.tryn', { n: one.n })} <span className="t3">{one.error_type ?? ''}</span>
                </button>
              ))}
            </div>
          )}
        </div>
        <LogPanel job={job} run={run} />
      </section>
      <StoryPanel job={job} story={story} run={runs.find((one) => one.n === shown)} />
    </>
  )
}

function RunMark({ run }: { run: Run }) {
  if (run.ended_at === null) return <Icon name="play" size={11} />
  return run.outcome === 'succeeded' ? (
    <span className="free">
      <Icon name="tick" size={11} />
    </span>
  ) : (
    <span className="fail">
      <Icon name="cross" size={11} />
    </span>
  )
}

function JobActs({ job, jobs }: { job: Job; jobs: readonly Job[] }) {
  const { t } = useTranslation()
  const { open } = useDesk()
  const { act, move } = useActs()
  const blocked = useBlocked()
  const over = FINAL.has(job.state)
  const waits = job.state === 'queued'
  const holding: JobAct = job.intent === 'hold' ? 'unhold' : 'hold'
  const again = (): void => {
    if (retryHelps(job)) void act('retry', [job])
    else open(newJob(like(job)))
  }
  const cancel = (): void => {
    if (ACTIVE.has(job.state)) open({ kind: 'cancel', jobs: [job] })
    else void act('cancel', [job])
  }
  const nudge = (by: 1 | -1): unknown => {
    const to = blocked ? null : stepped(jobs, job.id, by)
    return to ? void move(job.id, to) : false
  }
  useKeys({
    x: () => !blocked && !over && open({ kind: 'cancel', jobs: [job] }),
    r: () => !blocked && over && again(),
    h: () => !blocked && waits && void act(holding, [job]),
    'Alt ArrowUp': () => nudge(-1),
    'Alt ArrowDown': () => nudge(1),
  })
  const mover = (by: 1 | -1) => {
    const to = stepped(jobs, job.id, by)
    return (
      <Act
        icon={by < 0 ? 'up' : 'lower'}
        blocked={blocked}
        disabled={to === null}
        command={to ? moveCommand(job.id, to) : `jostle move ${job.id} ${by < 0 ? 'first' : 'last'}`}
        onDo={() => nudge(by)}
      >
        <span className="sr">{t(by < 0 ? 'act.up' : 'act.down')}</span>
      </Act>
    )
  }
  return (
    <span className="acts">
      {waits && mover(-1)}
      {waits && mover(1)}
      {(waits || resizable(job)) && (
        <button
          type="button"
          className="btn"
          disabled={blocked !== undefined}
          title={blocked}
          onClick={() => open({ kind: 'change', job })}
        >
          {t(waits ? 'act.change' : 'act.resize')}
        </button>
      )}
      {waits && (
        <Act icon="pause" blocked={blocked} command={jobCommand(holding, [job.id])} onDo={() => void act(holding, [job])}>
          {t(`act.${holding}`)}
        </Act>
      )}
      {!over && (
        <Act
          look="warn"
          icon="cross"
          blocked={blocked}
          disabled={job.state === 'stopping'}
          command={jobCommand('cancel', [job.id])}
          onDo={cancel}
        >
          {t('act.cancel')}
        </Act>
      )}
      {over && (
        <Act look="primary" icon="again" blocked={blocked} command={jobCommand('retry', [job.id])} onDo={again}>
          {retryHelps(job) ? t('act.retry') : t('act.editretry')}
        </Act>
      )}
    </span>
  )
}
