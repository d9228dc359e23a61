// A job file or a sweep: what of it would be queued, how many of those start now, and what is wrong with it.
import { useTranslation } from 'react-i18next'
import type { JobFile, WouldRun } from '../experiments/jobfile'
import { Saying } from './outlook'

export function BatchOutlook({ file }: { file: JobFile }) {
  const { t } = useTranslation()
  const looked = file.preview
  const wrong = looked?.flaws[0]
  if (file.error || wrong)
    return (
      <Saying look="waits" head={t('new.cannot')}>
        <p className="t2">
          {wrong ? `${wrong.line ? `${t('tasks.line', { line: wrong.line })} ` : ''}${wrong.text}` : file.error}
        </p>
      </Saying>
    )
  if (!looked) return <div className="dry blank">{t('new.asking')}</div>
  const run = looked.batches.reduce((sum, batch) => sum + batch.run, 0)
  if (run === 0) return <Saying look="waits" head={t('jobfile.nothing')} />
  const starts = looked.batches.some((batch) => batch.would?.starts || batch.would?.chance)
  const known = looked.batches.every((batch) => batch.would !== null)
  return (
    <>
      <Saying
        look={starts ? 'starts' : 'waits'}
        head={t(known ? (starts ? 'new.somestart' : 'new.allwait') : 'new.queuedn', { count: run })}
      >
        {looked.batches.map((batch) => (
          <OneBatch key={`${batch.name}${batch.suite}`} batch={batch} />
        ))}
        {looked.messages.map((message) => (
          <p key={message} className="t2">
            {message}
          </p>
        ))}
      </Saying>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached */}
      <ul className="firstjobs" tabIndex={0} aria-label={t('tasks.preview')}>
        {looked.batches
          .flatMap((batch) => batch.first.map((job) => ({ ...job, batch: batch.name })))
          .slice(0, 40)
          .map((job, i) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: two jobs may have the same name
            <li key={i}>
              <code className="clip" title={[job.name, ...job.commands].join('\n')}>
                {job.name}
              </code>
              <span className="t2">{job.text || t(`jobfile.do.${job.do}`)}</span>
            </li>
          ))}
      </ul>
    </>
  )
}

/** Which come first is not said where chance decides it. */
function OneBatch({ batch }: { batch: WouldRun }) {
  const { t } = useTranslation()
  const would = batch.would
  return (
    <p className="t2">
      <b className="strong">{batch.name}</b> {t('jobfile.runof', { run: batch.run, total: batch.jobs })}
      {batch.rest && ` (${batch.rest})`}
      {batch.attach !== null && <> {t('jobfile.attach', { id: batch.attach })}</>}
      {would && would.starts > 0 && (
        <> {t(would.gpus.length ? 'new.startnow' : 'new.startbare', { count: would.starts, gpus: would.gpus.join(', ') })}</>
      )}
      {would?.chance && <> {t('new.drawn')}</>}
      {would?.waits && <> {would.waits}</>}
    </p>
  )
}
