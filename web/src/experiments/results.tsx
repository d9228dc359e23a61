// The table of `jostle results` for one batch: mean ± deviation over seeds, n, the best; what is missing; as text to take along.
import { lazy, Suspense, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { failed } from '../api/acts'
import { Command } from '../parts/controls'
import { Icon } from '../parts/icons'
import { resultsText } from './data'
import { type Asked, fewer, figure, lacking, nameOf, resultsCommand, type Table, table } from './model'
import type { Cell, Missing, Results } from './types'

const Plot = lazy(() => import('./plot'))

export const FORMATS = { markdown: ['Markdown', 'md'], latex: ['LaTeX', 'tex'], csv: ['CSV', 'csv'] } as const
const FIRST = 200 // lines, and things that are missing

interface ResultsProps {
  asked: Asked
  keys: string[] // that may be columns
  results: Results | undefined
  error: string
  busy: boolean
  shown: string
  onShow: (metric: string) => void
  onMetrics: (metrics: string[]) => void
  onAcross: (key: string | null) => void
}

export function ResultsPanel({ asked, keys, results, error, busy, shown, onShow, onMetrics, onAcross }: ResultsProps) {
  const { t } = useTranslation()
  const [adding, setAdding] = useState(false)
  const names = results?.metrics.map((metric) => metric.name) ?? []
  const one = results && { ...results, metrics: results.metrics.filter((metric) => metric.name === shown) }
  const made = one && table(one, asked.across)
  const counted = made?.lines.some((line) => line.cells.some(Boolean)) ?? false
  return (
    <>
      <section className="panel" aria-label={t('experiments.results')}>
        <header className="wrap">
          <h2>{t('experiments.results')}</h2>
          <span className="chips">
            {names.map((name) => (
              <button key={name} type="button" className="chipbtn" aria-pressed={name === shown} onClick={() => onShow(name)}>
                {name}
              </button>
            ))}
            <button type="button" className="chipbtn" aria-expanded={adding} onClick={() => setAdding(!adding)}>
              <Icon name="plus" size={10} /> {t('experiments.metric')}
            </button>
          </span>
          <span className="grow" />
          {keys.length > 1 && (
            <label className="field small" title={t('experiments.across')}>
              <span className="sr">{t('experiments.across')}</span>
              <select value={asked.across ?? ''} onChange={(event) => onAcross(event.target.value || null)}>
                <option value="">–</option>
                {keys.map((key) => (
                  <option key={key}>{key}</option>
                ))}
              </select>
            </label>
          )}
          <Formats asked={asked} disabled={!counted} />
        </header>
        {adding && (
          <Metrics
            metrics={asked.metrics}
            onMetrics={(next) => {
              onMetrics(next)
              setAdding(false)
            }}
          />
        )}
        {error ? (
          <p className="note fail" role="alert">
            {error}
          </p>
        ) : !made ? (
          <p className="note">{busy ? t('experiments.reading') : t('experiments.novalues')}</p>
        ) : counted ? (
          <div className="scroll">
            <Grid made={made} />
            <Legend made={made} results={one} metric={shown} />
          </div>
        ) : (
          <p className="note">{results?.messages.at(-1) ?? t('experiments.novalues')}</p>
        )}
      </section>
      {made && counted && (
        <section className="panel plotpanel" aria-label={t('experiments.plotof', { metric: shown })}>
          <Suspense fallback={<p className="note">…</p>}>
            <Plot made={made} metric={shown} name={`jostle-${asked.batch}-${shown}.svg`} />
          </Suspense>
        </section>
      )}
      <section className="panel missing" aria-label={t('experiments.missing')}>
        <header>
          <h2>{t('experiments.missing')}</h2>
          {results && (
            <span className="t2">
              {t('experiments.missingof', {
                count: results.missing.length,
                total: results.groups.reduce((sum, group) => sum + group.runs, 0),
              })}
            </span>
          )}
        </header>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached */}
        <div className="scroll" tabIndex={0}>
          <ul>
            {results?.missing.slice(0, FIRST).map((missing) => (
              <Lost key={`${missing.label}${missing.metric ?? ''}`} missing={missing} />
            ))}
            {results?.notes.map((note) => (
              <li key={note} className="t2">
                {note}
              </li>
            ))}
          </ul>
        </div>
        <footer>
          <Command text={resultsCommand(asked)} />
        </footer>
      </section>
    </>
  )
}

function Lost({ missing }: { missing: Missing }) {
  const { t } = useTranslation()
  const { job, state } = missing
  const name = job === null ? missing.label : t('experiments.jobnamed', { id: job, name: nameOf(missing) })
  return (
    <li>
      <code className="clip" title={name}>
        {name}
      </code>
      <span className={state === 'failed' ? 'fail' : 't2'}>{missing.why}</span>
    </li>
  )
}

function Grid({ made }: { made: Table }) {
  return (
    <table className="list results">
      <thead>
        <tr>
          <th>{made.keys.join(' · ')}</th>
          {made.columns.map((column) => (
            <th key={column.value ?? ''} className="num">
              {column.value ?? column.metric}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {made.lines.slice(0, FIRST).map((line) => (
          <tr key={line.name}>
            <td className="clip name" title={line.name}>
              {line.name}
            </td>
            {line.cells.map((cell, k) => (
              <td key={made.columns[k]?.value ?? ''} className="num">
                <Figure cell={cell} few={fewer(cell, line.runs[k] ?? 0, made.most[k] ?? 0)} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Figure({ cell, few }: { cell: Cell | null; few: boolean }) {
  if (!cell) return <span className="t3">–</span>
  return (
    <span className={cell.best ? 'best' : ''} title={cell.values.map((value) => String(value)).join('  ')}>
      <span className="mean">{figure(cell.mean)}</span> ± {cell.std === null ? '∞' : figure(cell.std)}{' '}
      <span className={few ? 'wait strong' : 't3'}>n={cell.n}</span>
    </span>
  )
}

function Legend({ made, results, metric }: { made: Table; results: Results; metric: string }) {
  const { t } = useTranslation()
  const few = new Set(
    made.lines.flatMap((line) =>
      line.cells.filter((cell, k) => fewer(cell, line.runs[k] ?? 0, made.most[k] ?? 0)).map((cell) => cell?.n ?? 0),
    ),
  )
  const lack = lacking(results.missing, metric)
  const whys = [
    lack.unfinished && t('experiments.unfinished', { count: lack.unfinished }),
    lack.failed && t('experiments.failedruns', { count: lack.failed }),
    lack.other && t('experiments.otherruns', { count: lack.other }),
  ].filter(Boolean)
  return (
    <p className="legend t2">
      {t(results.metrics[0]?.best === 'min' ? 'experiments.bestmin' : 'experiments.bestmax')}
      {few.size > 0 && (
        <>
          <br />
          <b className="wait">n={[...few].sort((a, b) => a - b).join(', ')}</b>{' '}
          {t('experiments.fewer', { why: whys.join(t('experiments.and')) || t('experiments.differ') })}
        </>
      )}
    </p>
  )
}

function Formats({ asked, disabled }: { asked: Asked; disabled: boolean }) {
  const { t } = useTranslation()
  const take = async (format: keyof typeof FORMATS): Promise<void> => {
    try {
      save(await resultsText(asked, format), `jostle-${asked.batch}.${FORMATS[format][1]}`)
    } catch (error) {
      failed(error)
    }
  }
  return (
    <span className="chips">
      {(Object.keys(FORMATS) as (keyof typeof FORMATS)[]).map((format) => (
        <button
          key={format}
          type="button"
          className="chipbtn"
          disabled={disabled}
          title={resultsCommand(asked, format)}
          aria-label={t('experiments.download', { format: FORMATS[format][0] })}
          onClick={() => void take(format)}
        >
          {FORMATS[format][0]}
        </button>
      ))}
    </span>
  )
}

/** A text as a file of the person's. */
export function save(text: string, name: string, kind = 'text/plain'): void {
  const url = URL.createObjectURL(new Blob([text], { type: `${kind};charset=utf-8` }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}

function Metrics({ metrics, onMetrics }: { metrics: readonly string[]; onMetrics: (metrics: string[]) => void }) {
  const { t } = useTranslation()
  const [text, setText] = useState(metrics.join('\n'))
  return (
    <form
      className="metrics"
      onSubmit={(event) => {
        event.preventDefault()
        onMetrics(
          text
            .split('\n')
            .map((line) => line.trim())
            .filter(Boolean),
        )
      }}
    >
      <label htmlFor="metrics">{t('experiments.metricsof')}</label>
      <textarea
        id="metrics"
        className="text"
        rows={3}
        spellCheck={false}
        placeholder={'accuracy\nloss=val loss: ([0-9.]+)'}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <div className="row">
        <span className="t3 grow">{t('experiments.metrichow')}</span>
        <button type="submit" className="btn small primary">
          {t('experiments.read')}
        </button>
      </div>
    </form>
  )
}
