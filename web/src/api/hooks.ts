// How components look at what lives outside of them.
import { type QueryClient, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useMemo, useRef, useSyncExternalStore } from 'react'
import { useTranslation } from 'react-i18next'
import { patched } from '../model/jobs'
import { setMe } from '../model/people'
import type { Field } from '../model/rules'
import { get } from './call'
import { live, type Picture } from './live'
import { session } from './session'
import type { History, Job, Overview, Ps, Status, Story } from './types'

/** These things of the picture. Whoever asks renders when one of them changes, not with every word of the stream. */
export function useLive<K extends keyof Picture>(...keys: K[]): Pick<Picture, K> {
  const kept = useRef(live.picture)
  return useSyncExternalStore(live.subscribe, () => {
    const now = live.picture
    if (keys.some((key) => now[key] !== kept.current[key])) kept.current = now
    return kept.current
  })
}

/** The tables of what rules and jobs may say; read once. */
export function useFields(): { rules: Field[]; job: Field[] } | undefined {
  const ask = { queryKey: ['fields'], staleTime: Number.POSITIVE_INFINITY }
  return useQuery({ ...ask, queryFn: ({ signal }) => get<{ rules: Field[]; job: Field[] }>('/api/v1/fields', {}, signal) }).data
}

/** From what to what a number of a job may be; nothing until the table is there. */
export function useBounds(name: string): { least?: number; most?: number } {
  const field = useFields()?.job.find((one) => one.name === name)
  return field ? { least: field.low, most: field.high } : {}
}

export const useSession = () => useSyncExternalStore(session.subscribe, session.snapshot)

export function useRights(): { mayWrite: boolean } {
  return { mayWrite: useSession()?.rights === 'all' }
}

/** Why this person may change nothing, in words; undefined: they may. What needs the engine asks `useBlocked`. */
export function useMayNot(): string | undefined {
  const { t } = useTranslation()
  return useRights().mayWrite ? undefined : t('shell.readonly')
}

/** Why nothing can be changed at the moment, in words; undefined: it can. */
export function useBlocked(): string | undefined {
  const { t } = useTranslation()
  const { link, engine } = useLive('link', 'engine')
  const mayNot = useMayNot()
  if (mayNot) return mayNot
  if (link === 'lost') return t('error.offline')
  return engine === false ? t('error.engine') : undefined
}

const TOLD_MS = 250 // events of this long are one reading
const REASONS_MS = 5000 // what waits is explained anew this often: cards change without an event of a job

/** As many jobs as a person reads: what runs, the first that wait, the last that ended. Small, so it is read again and again. */
export function useJobs() {
  const { i18n } = useTranslation()
  const client = useQueryClient()
  const { link } = useLive('link')
  return useQuery({
    queryKey: ['ps', 'short', i18n.language],
    queryFn: async ({ signal }) => {
      const told = await get<Ps>('/api/v1/ps', { short: true }, signal)
      client.setQueryData<Ps>(['ps', 'all', i18n.language], (known) => known && patched(known, told.jobs))
      return told
    },
    refetchInterval: (query) => {
      const waits = query.state.data?.jobs.some((job) => job.state === 'queued')
      return waits && link === 'live' ? REASONS_MS : false
    },
  })
}

/** Every job there is, read once; events and the short list keep it true. */
export function useAllJobs(enabled = true) {
  const { i18n } = useTranslation()
  return useQuery({
    queryKey: ['ps', 'all', i18n.language],
    queryFn: ({ signal }) => get<Ps>('/api/v1/ps', { all: true }, signal),
    enabled,
    staleTime: Number.POSITIVE_INFINITY,
    structuralSharing: false, // to compare ten thousand jobs in depth takes longer than a frame; `patched` keeps what is the same
  })
}

const FEW = 2000

/** How many jobs there are in each state; undefined until that is known. */
export function useCounts(): Record<string, number> | undefined {
  const { data } = useQuery({ queryKey: ['counts'], queryFn: ({ signal }) => get<Status>('/api/v1/status', {}, signal) })
  return data?.counts
}

/** All jobs while they are few, else as many as a person reads. */
export function useShownJobs(): { jobs: Job[] | undefined; whole: boolean; more: number; error: Error | null } {
  const counts = useCounts()
  const total = Object.values(counts ?? {}).reduce((sum, count) => sum + count, 0)
  const short = useJobs()
  const all = useAllJobs(total > 0 && total <= FEW)
  const jobs = all.data?.jobs ?? short.data?.jobs
  return { jobs, whole: all.data !== undefined, more: all.data ? 0 : (short.data?.more?.waiting ?? 0), error: short.error }
}

/** Who and where one is; read once. */
export function useStatus(): Status | undefined {
  const { data } = useQuery({ queryKey: ['status'], queryFn: ({ signal }) => get<Status>('/api/v1/status', {}, signal) })
  if (data?.user) setMe(data.user)
  return data
}

export function useOverview(every: number | false, enabled = true) {
  return useQuery({
    queryKey: ['overview'],
    queryFn: ({ signal }) => get<Overview>('/api/gpu', {}, signal),
    enabled,
    refetchInterval: every,
  })
}

const PROCESSES_MS = 15_000

export interface Known {
  since: number | null // milliseconds
  command: string
}

/** What is known of each process on the cards: since when it runs, and its command line. */
export function useProcesses(): Map<number, Known> {
  const { link } = useLive('link')
  const { data, dataUpdatedAt } = useOverview(link === 'live' ? PROCESSES_MS : false)
  return useMemo(() => {
    const processes = data?.gpus.flatMap((gpu) => gpu.processes ?? []) ?? []
    return new Map(
      processes.map((one) => [
        one.pid,
        { since: one.running_time === null ? null : dataUpdatedAt - one.running_time * 1000, command: one.command ?? '' },
      ]),
    )
  }, [data, dataUpdatedAt])
}

export type Since = '10m' | '2h' | '24h' | '7d'

const HISTORY_MS: Record<Since, number> = { '10m': 10_000, '2h': 15_000, '24h': 60_000, '7d': 300_000 }

/** With how far the host's clock is ahead of this browser's, in seconds. */
export type Past = History & { ahead: number }

/** What the cards did since then, and who had them. */
export function useHistory(since: Since): Past | undefined {
  const { link } = useLive('link')
  const { data } = useQuery({
    queryKey: ['history', since],
    queryFn: async ({ signal }): Promise<Past> => {
      const told = await get<History>('/api/v1/history', { since }, signal)
      return { ...told, ahead: told.at - Date.now() / 1000 }
    },
    refetchInterval: link === 'live' ? HISTORY_MS[since] : false,
    staleTime: HISTORY_MS[since] / 2,
    placeholderData: (last) => last,
  })
  return data
}

export interface Workspace {
  path: string
  name: string
  current: boolean
  exists: boolean
}

/** The known workspaces, the one of the web process first. */
export function useWorkspaces(): Workspace[] | undefined {
  return useQuery({
    queryKey: ['workspaces'],
    queryFn: ({ signal }) => get<{ workspaces: Workspace[] }>('/api/v1/workspaces', {}, signal),
  }).data?.workspaces
}

const RUNS_MS = 5000 // what a run uses grows without an event

export function useStory(id: number | null) {
  const { i18n } = useTranslation()
  const { link } = useLive('link')
  return useQuery({
    queryKey: ['show', id, i18n.language],
    queryFn: ({ signal }) => get<Story>(`/api/v1/show/${id}`, {}, signal),
    enabled: id !== null,
    refetchInterval: (query) => (link === 'live' && query.state.data?.job.state === 'running' ? RUNS_MS : false),
  })
}

/** Keeps the lists true while the stream speaks. One per page. */
export function useFreshness(): void {
  const client = useQueryClient()
  useEffect(() => {
    const touched = new Set<number>()
    let unnamed = false // an event that names no job, as a submit of many
    let timer: ReturnType<typeof setTimeout> | undefined
    const later = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined
        const ids = [...touched]
        touched.clear()
        void refresh(client, ids, unnamed)
        unnamed = false
      }, TOLD_MS)
    }
    const stop = live.hear({
      event: (event) => {
        if (event.job === null) unnamed = true
        else touched.add(event.job)
        later()
      },
      behind: () => {
        void client.invalidateQueries({ queryKey: ['ps'] })
        void client.invalidateQueries({ queryKey: ['compete'] })
      },
    })
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [client])
}

const AT_ONCE = 500

async function refresh(client: QueryClient, ids: number[], unnamed: boolean): Promise<void> {
  for (const id of ids) void client.invalidateQueries({ queryKey: ['show', id] })
  void client.invalidateQueries({ queryKey: ['compete'] })
  void client.invalidateQueries({ queryKey: ['counts'] })
  void client.invalidateQueries({ queryKey: ['alloc'] })
  if (unnamed || ids.length > AT_ONCE) {
    await client.invalidateQueries({ queryKey: ['ps'] })
    return
  }
  try {
    const fresh = await get<Ps>('/api/v1/ps', { id: ids })
    client.setQueriesData<Ps>({ queryKey: ['ps'] }, (known) => known && patched(known, fresh.jobs))
  } catch {
    await client.invalidateQueries({ queryKey: ['ps'] })
  }
}
