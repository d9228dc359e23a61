// Jobs and schedulers on the left, the log of one in the middle, its story on the right.
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation, useParams } from 'wouter'
import { useActs } from '../api/acts'
import { useAllJobs, useBlocked, useJobs, useStory } from '../api/hooks'
import type { Job, Run } from '../api/types'
import { newJob, useDesk } from '../desk'
import { LogPanel } from '../log/panel'
import { type JobAct, jobCommand } from '../model/command'
import { ACTIVE, FINAL, retryHelps } from '../model/jobs'
import { copyText } from '../parts/controls'
import { Icon } from '../parts/icons'
import { useKeys } from '../parts/keys'
import { JobPill } from '../parts/pill'
import { say } from '../parts/toast'
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
        <OneJob key={job.id} job={job} />
      ) : (
        <section className="panel mid">
          <p className="note">{jobs.length ? t('state.pick') : t('state.nojobs')}</p>
        </section>
      )}
    </div>
  )
}

function OneJob({ job }: { job: Job }) {
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
  useKeys({ '[': () => step(-1), ']': () => step(1) })
  return (
    <>
      <section className="panel mid" aria-label={`#${job.id}`}>
        <div className="jobhead">
          <div className="row" style={{ flexWrap: 'wrap' }}>
            <span className="mono t3">#{job.id}</span>
            <h1>{job.name}</h1>
            <JobPill job={job} />
            <JobActs job={job} />
          </div>
          {job.reason?.text && <p className="t2">{job.reason.text}</p>}
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

function JobActs({ job }: { job: Job }) {
  const { t } = useTranslation()
  const { open } = useDesk()
  const { act } = useActs()
  const blocked = useBlocked()
  const over = FINAL.has(job.state)
  const verb: JobAct = over ? 'retry' : 'cancel'
  const again = (): void => {
    if (retryHelps(job)) void act('retry', [job])
    else
      open(
        newJob({
          command: job.commands.join(' && '),
          name: job.name,
          gpus: job.gpu_request[0] ?? 1,
          memory: job.memory_mib === null ? '' : String(Math.round((job.memory_mib / 1024) * 10) / 10),
          share: job.share,
          queue: job.queue ?? '',
          workdir: job.workdir,
        }),
      )
  }
  useKeys({
    x: () => !blocked && !over && open({ kind: 'cancel', jobs: [job] }),
    r: () => !blocked && over && again(),
    h: () => !blocked && job.state === 'queued' && void act(job.intent === 'hold' ? 'unhold' : 'hold', [job]),
  })
  const copy = async (): Promise<void> => {
    const command = jobCommand(verb, [job.id])
    if (await copyText(command)) say({ text: t('control.copiedtext', { text: command }) })
  }
  return (
    <span className="acts">
      <button type="button" className="btn" title={jobCommand(verb, [job.id])} onClick={() => void copy()}>
        <Icon name="copy" />
        {t('control.copycommand')}
      </button>
      {job.state === 'queued' && (
        <button
          type="button"
          className="btn"
          disabled={blocked !== undefined}
          title={blocked}
          onClick={() => void act(job.intent === 'hold' ? 'unhold' : 'hold', [job])}
        >
          <Icon name="pause" />
          {job.intent === 'hold' ? t('act.unhold') : t('act.hold')}
        </button>
      )}
      {!over && (
        <button
          type="button"
          className="btn warn"
          disabled={blocked !== undefined || job.state === 'stopping'}
          title={blocked}
          onClick={() => (ACTIVE.has(job.state) ? open({ kind: 'cancel', jobs: [job] }) : void act('cancel', [job]))}
        >
          <Icon name="cross" />
          {t('act.cancel')}
        </button>
      )}
      {over && (
        <button type="button" className="btn primary" disabled={blocked !== undefined} title={blocked} onClick={again}>
          <Icon name="again" />
          {retryHelps(job) ? t('act.retry') : t('act.editretry')}
        </button>
      )}
    </span>
  )
}
