// What a person does to jobs and cards, with what is said afterwards. Each is a verb of the command line.
import { useQueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { say } from '../parts/toast'
import { CallError, post } from './call'
import type { Job } from './types'

interface Done {
  done: number[]
  refused: { id: number; text: string }[]
}

export type Verb = 'cancel' | 'retry' | 'hold' | 'unhold'

export function useActs() {
  const { t } = useTranslation()
  const client = useQueryClient()
  return useMemo(() => {
    async function act(verb: Verb, jobs: readonly Pick<Job, 'id' | 'state'>[]): Promise<void> {
      const ids = jobs.map((job) => job.id)
      try {
        const answer = await post<Done>(`/api/v1/${verb}`, { ids })
        for (const refused of answer.refused.slice(0, 3)) say({ text: refused.text, bad: true })
        const done = new Set(answer.done)
        const waited = jobs.filter((job) => job.state === 'queued' && done.has(job.id))
        const undo = verb === 'cancel' && waited.length ? () => void act('retry', waited) : undefined
        if (done.size) say({ text: t(`done.${verb}`, { count: done.size }), undo })
      } catch (error) {
        failed(error)
      }
      await client.invalidateQueries({ queryKey: ['ps'] })
    }

    async function takeCard(index: number, use: boolean): Promise<void> {
      try {
        await post('/api/v1/gpus', use ? { include: [index] } : { exclude: [index] })
        say({ text: t(use ? 'done.include' : 'done.exclude', { index }) })
      } catch (error) {
        failed(error)
      }
    }
    return { act, takeCard }
  }, [client, t])
}

export function failed(error: unknown): void {
  say({ text: error instanceof CallError ? error.message : String(error), bad: true })
}
