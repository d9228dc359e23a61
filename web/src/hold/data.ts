// What a person holds and may hold: allocations, and limits over all their homes.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { failed } from '../api/acts'
import { get, post } from '../api/call'
import { useLive } from '../api/hooks'
import type { Reason, State } from '../api/types'
import { allocCommand, limitsCommand, type NewAllocation, releaseCommand, setCommand, startCommand } from '../model/command'
import { say } from '../parts/toast'

export interface Allocation {
  name: string
  id: number
  state: State
  intent: string
  gpu_request: number[]
  memory_mib: number | null
  gpus: number[]
  since: number | null
  until: number | null // when its time is up
  idle_s: number | null // no process on its cards, and nothing inside
  idle_release: number | null
  tied_to: number[] | null
  programs: { id: number; name: string; state: State; gpus: number[] }[]
  reason: Reason | null
}

export interface Limit {
  name: string
  most: number | null // null: nobody sets it
  source: string | null
  held: number
  by: string // who set it, in words
}

export interface Limits {
  limits: Limit[]
  said: { own?: Record<string, number> }
  hold_text: string
}

const AGAIN_MS = 10_000 // how long it stands idle grows without an event

export function useAllocations() {
  const { i18n } = useTranslation()
  const { link } = useLive('link')
  return useQuery({
    queryKey: ['alloc', i18n.language],
    queryFn: ({ signal }) => get<{ allocations: Allocation[] }>('/api/v1/alloc', {}, signal),
    refetchInterval: link === 'live' ? AGAIN_MS : false,
  })
}

export function useLimits() {
  const { i18n } = useTranslation()
  const { link } = useLive('link')
  return useQuery({
    queryKey: ['limits', i18n.language],
    queryFn: ({ signal }) => get<Limits>('/api/v1/limits', {}, signal),
    refetchInterval: link === 'live' ? AGAIN_MS : false,
  })
}

export interface Program {
  run: string // empty: that of the manager's file
  workdir: string
  beside: boolean
  gpus: string
}

/** What `POST /api/v1/alloc` takes. */
export function allocBody(given: NewAllocation): Record<string, unknown> {
  const body: Record<string, unknown> = { name: given.name.trim(), gpus: given.gpus.trim() || 1 }
  if (given.memory) body.memory = `${given.memory}GiB`
  if (given.time.trim()) body.for = given.time.trim()
  if (given.idle.trim()) body.release_idle = given.idle.trim()
  return body
}

/** Each is a verb of the command line, which is told with it. What is refused is thrown for whoever asked. */
export function useHolding() {
  const { t } = useTranslation()
  const client = useQueryClient()
  return useMemo(() => {
    const fresh = (): void => {
      for (const key of ['alloc', 'limits', 'ps', 'counts']) void client.invalidateQueries({ queryKey: [key] })
    }
    const told = async (text: string, command: string, call: Promise<unknown>): Promise<void> => {
      await call
      say({ text, command })
      fresh()
    }
    return {
      alloc: (given: NewAllocation): Promise<void> =>
        told(t('hold.asked', { name: given.name.trim() }), allocCommand(given), post('/api/v1/alloc', allocBody(given))),
      start: ({ name }: Allocation, { run, workdir, beside, gpus }: Program): Promise<void> =>
        told(
          t('hold.started', { name }),
          startCommand(name, run, workdir, beside, gpus),
          post('/api/v1/start', {
            name,
            workdir,
            beside,
            ...(run.trim() ? { run } : {}),
            ...(gpus.trim() ? { gpus: gpus.trim() } : {}),
          }),
        ),
      resize: ({ id, name }: Allocation, gpus: string): Promise<void> =>
        told(t('hold.resized', { name }), setCommand(id, { gpus }), post('/api/v1/set', { ids: [id], values: { gpus } })),
      release: ({ name }: Allocation): Promise<void> =>
        told(t('hold.released', { name }), releaseCommand(name), post('/api/v1/release', { names: [name] })).catch(failed),
      limit: (name: string, most: number | null): Promise<void> =>
        told(
          t('limits.saved'),
          limitsCommand(name, most),
          post('/api/v1/limits', most === null ? { clear: [name] } : { set: { [name]: most } }),
        ).catch(failed),
    }
  }, [client, t])
}
