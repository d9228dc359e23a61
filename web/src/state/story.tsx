import { useTranslation } from 'react-i18next'
import type { Job, Profile, Run, StoreEvent, Story } from '../api/types'
import { clock, gib, span } from '../model/format'
import { CopyButton } from '../parts/controls'
import { useNow } from '../parts/now'
import { MemoryCurve } from './curve'
import { Processes } from './processes'

/** What jostle did about this job, in order, and the figures of one try. */
export function StoryPanel({ job, story, run }: { job: Job; story: Story | undefined; run: Run | undefined }) {
  const { t } = useTranslation()
  const ended = run?.exit_code ?? null
  const now = useNow(5000)
  const facts: [string, string][] = [
    ['asked', [cardsAsked(job, t), ...moreAsked(job, t)].join(', ')],
    ['cards', run?.gpus.join(', ') || '–'],
    ...elastic(job, t),
    ['ran', ranFor(run, now)],
    ['peak', run?.peak_mib != null ? `${gib(run.peak_mib)} GiB` : '–'],
    ['load', loadOf(run?.profile, t)],
    ['neighbours', neighboursOf(run?.profile, t)],
    ['rss', run?.rss_mib != null ? `${run.rss_mib} MiB` : '–'],
    [
      'exit',
      run?.signal != null
        ? t('story.signal', { n: run.signal })
        : ended !== null
          ? `${ended}${run?.error_type ? `, ${run.error_type}` : ''}`
          : '–',
    ],
    ['queue', job.queue ?? '–'],
    ['batch', String(job.batch)],
    ['priority', String(job.priority)],
    ['workdir', job.workdir],
    ['logfile', run?.log ?? '–'],
  ]
  const command = job.commands.join('\n')
  return (
    <aside className="panel side" aria-label={t('story.title')}>
      <header>
        <h2>{t('story.title')}</h2>
      </header>
      <div className="scroll side">
        <ol className="story">
          <li>
            <time>{clock(job.submitted_at * 1000)}</time>
            <span>{job.queue === null ? t('event.submitted') : t('event.submittedqueue', { queue: job.queue })}</span>
          </li>
          {story?.events
            .filter((event) => event.kind !== 'submitted')
            .map((event) => (
              <li key={event.seq} className={event.kind === 'failed' ? 'fail' : ''}>
                <time>{clock(event.at * 1000)}</time>
                <span>{told(event, t)}</span>
              </li>
            ))}
        </ol>
        {run && <MemoryCurve run={run} />}
        <section>
          <h3>{run ? t('story.figures', { n: run.n }) : t('story.job')}</h3>
          <dl className="facts" style={{ marginTop: 8 }}>
            {facts.map(([name, value]) => (
              <div key={name} style={{ display: 'contents' }}>
                <dt>{t(`story.${name}`)}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </section>
        {run && run.n === job.attempt && story && <Processes processes={story.processes} />}
        <section>
          <h3 className="row">
            {t('story.command')} <CopyButton text={command} />
          </h3>
          <pre>{command}</pre>
        </section>
      </div>
    </aside>
  )
}

function cardsAsked(job: Job, t: Words): string {
  const count = job.gpu_request[0] ?? 0
  if (count === 0) return 'CPU'
  return job.memory_mib === null
    ? t('story.askswhole', { count })
    : t('story.asks', { count, memory: `${gib(job.memory_mib)} GiB` })
}

/** What it takes besides cards. */
const moreAsked = (job: Job, t: Words): string[] => [
  ...(job.cpus === null ? [] : [t('story.askscpus', { count: job.cpus })]),
  ...(job.host_memory_mib === null ? [] : [t('story.askshost', { memory: `${gib(job.host_memory_mib)} GiB` })]),
  ...Object.entries(job.counters).map(([name, n]) => `${name} ${n}`),
]

/** What of its cards may change while it runs, and how often it has; only of jobs of which it may. */
function elastic(job: Job, t: Words): [string, string][] {
  const [least = 0, most = 0] = job.gpu_request
  const facts: [string, string][] = []
  if (job.resize)
    facts.push(['elastic', t('story.elasticsaid', { least, most, how: t(`story.by.${job.resize}`), leg: job.leg ?? 1 })])
  if (job.when_stranger && job.when_stranger !== 'keep')
    facts.push(['stranger', t(`story.when.${job.when_stranger}`, { defaultValue: job.when_stranger })])
  if (job.inside != null) facts.push(['inside', `#${job.inside}`])
  return facts
}

function ranFor(run: Run | undefined, now: number): string {
  if (run?.ran_s != null) return span(run.ran_s)
  return run && run.ended_at === null ? span(now / 1000 - run.started_at) : '–'
}

type Words = (key: string, values?: Record<string, unknown>) => string

const loadOf = (profile: Profile | null | undefined, t: Words): string =>
  profile?.load_mean == null
    ? '–'
    : t('story.loadsaid', { mean: Math.round(profile.load_mean), high: Math.round(profile.load_p95 ?? profile.load_mean) })

/** Who was on its cards beside it. */
function neighboursOf(profile: Profile | null | undefined, t: Words): string {
  if (!profile) return '–'
  const said = profile.shared.map(
    (one) => `${one.job === null ? one.user || t('people.hidden') : `#${one.job}`} ${span(one.for_s)}`,
  )
  return said.join(', ') || t('story.alone')
}

/** What the reason alone would not tell. */
const NAMED = new Set(['resizing', 'grown', 'shrunk', 'resized', 'not_resized', 'paused', 'continued'])

function told(event: StoreEvent, t: (key: string, values?: Record<string, unknown>) => string): string {
  const { data, run } = event
  if (event.kind === 'starting')
    return data.gpus?.length ? t('event.starting', { n: run, gpus: data.gpus.join(', ') }) : t('event.startingcpu', { n: run })
  const gpus = data.gpus?.join(', ') ?? ''
  if (data.reason?.text) {
    const said = NAMED.has(event.kind) ? `${t(`event.${event.kind}`, { gpus })}: ` : ''
    return said + data.reason.text
  }
  return t(`event.${event.kind}`, { n: run, gpu: data.gpu ?? gpus, gpus, defaultValue: event.kind })
}
