// The batches, the newest first: name, how it stands, what it was made of.
import { useTranslation } from 'react-i18next'
import { Link } from 'wouter'
import { clock, span } from '../model/format'
import { progressOf } from '../model/sweeps'
import { Command, Segmented } from '../parts/controls'
import { Icon } from '../parts/icons'
import { Pill } from '../parts/pill'
import { Segments } from '../parts/segbar'
import { lookOfBatch, runCommand } from './model'
import type { Batch } from './types'

export type Which = 'sweeps' | 'all'

interface ListProps {
  batches: Batch[] | undefined
  error: string
  which: Which
  onWhich: (which: Which) => void
  picked: Batch | undefined
  onPick: (id: number) => void
  onAll: (() => void) | null // there may be older ones
}

export function BatchList({ batches, error, which, onWhich, picked, onPick, onAll }: ListProps) {
  const { t } = useTranslation()
  const sweeps = batches?.filter((one) => one.sweep) ?? []
  const shown = which === 'sweeps' ? sweeps : (batches ?? [])
  return (
    <section className="panel batches" aria-label={t('experiments.batches')}>
      <header>
        <h2>{t('experiments.batches')}</h2>
        <Segmented
          label={t('experiments.which')}
          value={which}
          choices={[
            { value: 'sweeps', label: t('experiments.sweeps', { count: sweeps.length }) },
            { value: 'all', label: t('experiments.all', { count: batches?.length ?? 0 }) },
          ]}
          onChange={onWhich}
        />
      </header>
      <div className="scroll">
        {error && <p className="note fail">{error}</p>}
        {shown.map((batch) => (
          <button
            key={batch.id}
            type="button"
            className="batch"
            aria-current={batch.id === picked?.id}
            onClick={() => onPick(batch.id)}
          >
            <span className="row">
              <span className="mono t3">{batch.id}</span>
              <b className="clip grow" title={batch.name}>
                {batch.name || '–'}
              </b>
              <Pill look={lookOfBatch(batch)} />
            </span>
            <Segments count={progressOf(batch.counts, batch.done_before)} />
            <span className="row">
              <span className="mono t3 clip grow">{nameOf(batch)}</span>
              <Standing batch={batch} />
            </span>
          </button>
        ))}
        {onAll && (
          <button type="button" className="link older" onClick={onAll}>
            {t('experiments.older')}
          </button>
        )}
      </div>
      <footer>
        {picked?.file && (
          <>
            <span className="t2">{t('experiments.again')}</span>
            <Command text={runCommand(picked.file, picked.suite)} />
            <Link className="btn small" href={fileAddress(picked.file)}>
              <Icon name="log" size={12} />
              {t('experiments.edit')}
            </Link>
          </>
        )}
        <Link className="link" href="/experiment/file">
          {t('experiments.files')}
        </Link>
      </footer>
    </section>
  )
}

const nameOf = (batch: Batch): string => batch.file?.split('/').at(-1) ?? '–'

/** In the query, so that the page stays as it is when another one is picked. */
export const batchAddress = (id: number): string => `/experiment?batch=${id}`

export const fileAddress = (path: string): string => `/experiment/file?path=${encodeURIComponent(path)}`

function Standing({ batch }: { batch: Batch }) {
  const { t } = useTranslation()
  const ended = batch.ended_at
  const done = (batch.counts.succeeded ?? 0) + batch.done_before
  const when = ended !== null ? clock(ended * 1000) : !batch.left_s ? '' : t('experiments.left', { long: span(batch.left_s) })
  const how = batch.done_before
    ? t('experiments.ran', { ran: batch.jobs - batch.done_before, before: batch.done_before })
    : t('experiments.of', { done, total: batch.jobs })
  return <span className="t2 nowrap">{[how, when].filter(Boolean).join(' · ')}</span>
}
