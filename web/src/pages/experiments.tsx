// Batches on the left, one of them folded over seeds in the middle, its results on the right.
import { useEffect, useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation, useSearch } from 'wouter'
import { useRights } from '../api/hooks'
import { keepMetrics, keptMetrics, useBatches, useBatchJobs, useFreshExperiments, useResults } from '../experiments/data'
import { Groups } from '../experiments/groups'
import { BatchList, batchAddress, type Which } from '../experiments/list'
import { axes, columnKey, newest, SEED } from '../experiments/model'
import { ResultsPanel } from '../experiments/results'
import type { Batch } from '../experiments/types'
import { Command } from '../parts/controls'
import '../style/experiments.css'

const NEWEST = 50 // as many as are listed unless all are asked for

export default function Experiments() {
  const { t } = useTranslation()
  const [, go] = useLocation()
  const id = new URLSearchParams(useSearch()).get('batch')
  const [all, setAll] = useState(false)
  const [chosen, setWhich] = useState<Which | null>(null)
  const { data: batches, error, isFetching } = useBatches(all)
  const named = id && /^\d+$/.test(id) ? Number(id) : null
  const which = chosen ?? (batches?.some((one) => one.sweep) ? 'sweeps' : 'all')
  const listed = which === 'sweeps' ? batches?.filter((one) => one.sweep) : batches
  const picked = batches?.find((one) => one.id === named) ?? (named === null ? listed?.[0] : undefined)
  useFreshExperiments(picked?.id ?? null)
  useEffect(() => {
    if (named !== null && batches && !picked && !all && batches.length === NEWEST) setAll(true)
  }, [named, batches, picked, all])
  return (
    <div className="experiments">
      <h1 className="sr">{t('page.experiments')}</h1>
      <BatchList
        batches={batches}
        error={error?.message ?? ''}
        which={which}
        onWhich={setWhich}
        picked={picked}
        onPick={(next) => go(batchAddress(next), { replace: true })}
        onAll={!all && batches?.length === NEWEST ? () => setAll(true) : null}
      />
      {picked ? <OneBatch key={picked.id} batch={picked} /> : <Nothing missing={named} loaded={!isFetching} />}
    </div>
  )
}

function Nothing({ missing, loaded }: { missing: number | null; loaded: boolean }) {
  const { t } = useTranslation()
  if (!loaded) return null
  return (
    <section className="panel note">
      <p className="strong">{missing === null ? t('experiments.none') : t('experiments.nobatch', { id: missing })}</p>
      <p>{t('experiments.nonehow')}</p>
      <p>
        <Command text="jostle run sweep.yaml" />
      </p>
    </section>
  )
}

function OneBatch({ batch }: { batch: Batch }) {
  const { t } = useTranslation()
  const { mayWrite } = useRights()
  const { data, error } = useBatchJobs(batch.id)
  const jobs = useMemo(() => newest(data?.jobs ?? []), [data])
  const [metrics, setMetrics] = useState(keptMetrics)
  const [across, setAcross] = useState<string | null | undefined>(undefined)
  const [show, setShow] = useState('')
  const column = across === undefined ? columnKey(jobs) : across
  const asked = { batch: batch.id, metrics, across: column }
  const began = batch.started_at !== null || batch.done_before > 0
  const results = useResults(data && began && mayWrite ? asked : null)
  const names = results.data?.metrics.map((metric) => metric.name) ?? []
  const shown = names.includes(show) ? show : (names[0] ?? 'accuracy')
  const keys = axes(jobs)
    .filter(([key, n]) => key !== SEED && n > 1)
    .map(([key]) => key)
  return (
    <>
      <Groups batch={batch} jobs={data?.jobs} error={error?.message ?? ''} results={results.data} metric={shown} />
      <div className="resultside">
        <ResultsPanel
          asked={asked}
          keys={keys}
          results={results.data}
          error={mayWrite ? (results.error?.message ?? '') : t('shell.readonly')}
          busy={results.isFetching}
          shown={shown}
          onShow={setShow}
          onMetrics={(next) => {
            keepMetrics(next)
            setMetrics(next)
          }}
          onAcross={setAcross}
        />
      </div>
    </>
  )
}
