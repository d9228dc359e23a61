// What a job file would queue: each batch with how many run and how many were done before, and the first of them by name.
import { useTranslation } from 'react-i18next'
import type { Looked } from './jobfile'

export function WouldQueue({ looked, flaws }: { looked: Looked | null; flaws: number }) {
  const { t } = useTranslation()
  const run = looked?.batches.reduce((sum, batch) => sum + batch.run, 0) ?? 0
  return (
    <section className="panel would" aria-label={t('tasks.preview')}>
      <header>
        <h2>{t('tasks.preview')}</h2>
        {flaws > 0 ? (
          <span className="pill fail">{t('tasks.nothing', { count: flaws })}</span>
        ) : (
          looked && <span className="pill accent">{t('jobfile.run', { count: run })}</span>
        )}
      </header>
      <div className="scroll">
        {looked?.messages.map((message) => (
          <p key={message} className="message wait">
            {message}
          </p>
        ))}
        {looked?.batches.map((batch) => (
          <section key={`${batch.name}${batch.suite}`}>
            <h3>
              <span className="grow clip">{batch.name}</span>
              <span className="t2">{t('jobfile.runof', { run: batch.run, total: batch.jobs })}</span>
            </h3>
            {batch.rest && <p className="t2">{batch.rest}</p>}
            {batch.attach !== null && <p className="wait">{t('jobfile.attach', { id: batch.attach })}</p>}
            <ul>
              {batch.first.map((job, i) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: two jobs may have the same name
                <li key={i} title={[job.name, ...job.commands].join('\n')}>
                  <code className="clip">{job.name}</code>
                  <span className={job.do === 'run' ? 'accent' : 't3'}>
                    {job.text || t(`jobfile.do.${job.do}`)}
                    {job.by && ` #${job.by[0]}`}
                  </span>
                </li>
              ))}
            </ul>
            {batch.jobs > batch.first.length && (
              <p className="t3">{t('jobfile.more', { count: batch.jobs - batch.first.length })}</p>
            )}
          </section>
        ))}
        {!looked && !flaws && <p className="note">…</p>}
      </div>
    </section>
  )
}
