// What rules mean now: asked of the engine, which counts cards as it does when it places a job.
import { useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { post } from '../api/call'
import { useLive } from '../api/hooks'
import type { Reason } from '../api/types'
import { nested } from '../model/rules'
import { useSettled } from '../newjob/settled'

/** Indices of cards, and numbers of them. */
export interface Courtesy {
  range: number[]
  available: number[]
  left: number[] // never used, where no number is set
  held: number[]
  limits: [number, number] | null // least and most
  limit: number
  more: number
  bounds: { name: string; most: number; held: number }[] // of the person, above all rules
}

export interface WaitingTask {
  id: number
  name: string
  needed: number
  starts: boolean
  started: boolean // also as it is
  gpus: number[]
  reason: Reason | null
}

export interface RuleEffects {
  diff: string[]
  before: Courtesy | null // null: no engine counts
  after: Courtesy | null
  waiting: WaitingTask[]
  running: number
}

const ASK_MS = 5000 // cards change while one looks

export function useEffects(changes: Record<string, unknown>, enabled: boolean) {
  const { i18n } = useTranslation()
  const { link, engine } = useLive('link', 'engine')
  const settled = useSettled(changes)
  return useQuery({
    queryKey: ['rules', 'preview', settled, i18n.language, engine],
    queryFn: () => post<RuleEffects>('/api/v1/rules/preview', nested(settled)),
    enabled,
    refetchInterval: link === 'live' ? ASK_MS : false,
    placeholderData: (last) => last,
    retry: false,
  })
}
