// What the page of experiments looks at: read once, kept true by the stream. Nothing is asked for while nothing happens.
import { keepPreviousData, type QueryClient, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { useTranslation } from 'react-i18next'
import { get } from '../api/call'
import { live } from '../api/live'
import type { Job, Ps } from '../api/types'
import { FINAL, patched } from '../model/jobs'
import type { Asked } from './model'
import type { Batch, Results } from './types'

const TOLD_MS = 1000 // events of this long are one reading
const RESULTS_MS = 10_000 // a table is read from logs, in a process of its own: not after every end
const AT_ONCE = 500

export function useBatches(all: boolean) {
  return useQuery({
    queryKey: ['batches', all],
    queryFn: async ({ signal }) => (await get<{ batches: Batch[] }>('/api/v1/batches', { all }, signal)).batches,
    placeholderData: keepPreviousData,
    staleTime: 0, // nobody listened while the page was not shown
  })
}

/** The jobs of one batch, all of them. */
export function useBatchJobs(batch: number | null) {
  const { i18n } = useTranslation()
  return useQuery({
    queryKey: ['batchjobs', batch, i18n.language],
    queryFn: ({ signal }) => get<Ps>('/api/v1/ps', { batch, all: true }, signal),
    enabled: batch !== null,
    staleTime: 0,
  })
}

const query = ({ batch, metrics, across }: Asked) => ({ target: [String(batch)], metric: metrics, across })

export function useResults(asked: Asked | null) {
  const { i18n } = useTranslation()
  return useQuery({
    queryKey: ['results', asked?.batch, asked?.metrics, asked?.across, i18n.language],
    queryFn: ({ signal }) => get<Results>('/api/v1/results', asked ? query(asked) : {}, signal),
    enabled: asked !== null,
    staleTime: RESULTS_MS,
    retry: false,
  })
}

/** The table as the command line prints it. */
export const resultsText = async (asked: Asked, format: string): Promise<string> =>
  (await get<{ text: string }>('/api/v1/results', { ...query(asked), format })).text

/** Keeps batches, the jobs of this one and its results true while the stream speaks. */
export function useFreshExperiments(batch: number | null): void {
  const client = useQueryClient()
  useEffect(() => {
    const touched = new Set<number>()
    let timer: ReturnType<typeof setTimeout> | undefined
    let later: ReturnType<typeof setTimeout> | undefined
    const read = (): void => {
      timer = undefined
      const ids = [...touched]
      touched.clear()
      void client.invalidateQueries({ queryKey: ['batches'] })
      if (batch !== null && ids.length) void refresh(client, batch, ids)
    }
    const stop = live.hear({
      event: (event) => {
        if (event.batch === null && event.job === null) return
        if (event.batch === batch && event.job !== null) touched.add(event.job)
        timer ??= setTimeout(read, TOLD_MS)
        if (event.batch === batch && FINAL.has(event.kind))
          later ??= setTimeout(() => {
            later = undefined
            void client.invalidateQueries({ queryKey: ['results', batch] })
          }, RESULTS_MS)
      },
      behind: () => {
        for (const name of ['batches', 'batchjobs', 'results']) void client.invalidateQueries({ queryKey: [name] })
      },
    })
    return () => {
      stop()
      clearTimeout(timer)
      clearTimeout(later)
    }
  }, [client, batch])
}

async function refresh(client: QueryClient, batch: number, ids: number[]): Promise<void> {
  const key = { queryKey: ['batchjobs', batch] }
  if (ids.length > AT_ONCE) return client.invalidateQueries(key)
  try {
    const fresh = (await get<Ps>('/api/v1/ps', { id: ids })).jobs.filter((job: Job) => job.batch === batch)
    client.setQueriesData<Ps>(key, (known) => known && patched(known, fresh))
  } catch {
    await client.invalidateQueries(key)
  }
}

const KEPT = 'jostle.metrics'

/** The metrics that a person has asked for last, as `--metric` takes them. */
export function keptMetrics(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEPT) ?? '[]')
    return Array.isArray(kept) ? kept.filter((one): one is string => typeof one === 'string') : []
  } catch {
    return []
  }
}

export const keepMetrics = (metrics: readonly string[]): void => localStorage.setItem(KEPT, JSON.stringify(metrics))
