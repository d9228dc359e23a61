// What a person does to jobs and cards, with what is said afterwards. Each is a verb of the command line.
import { useQueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { cardCommand, jobCommand, moveCommand, setCommand } from '../model/command'
import type { Place } from '../model/place'
import { say, type Toast } from '../parts/toast'
import { markJobs } from '../seen'
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
    /** One call, what it brought in words, and the command that does the same. */
    async function told<T>(call: Promise<T>, words: (answer: T) => Toast | null): Promise<void> {
      try {
        const toast = words(await call)
        if (toast) say(toast)
      } catch (error) {
        failed(error)
      }
      await client.invalidateQueries({ queryKey: ['ps'] })
    }

    function act(verb: Verb, jobs: readonly Pick<Job, 'id' | 'state'>[]): Promise<void> {
      const ids = jobs.map((job) => job.id)
      return told(post<Done>(`/api/v1/${verb}`, { ids }), (answer) => {
        for (const refused of answer.refused.slice(0, 3)) say({ text: refused.text, bad: true })
        const done = new Set(answer.done)
        if (verb === 'retry') markJobs(ids)
        const waited = jobs.filter((job) => job.state === 'queued' && done.has(job.id))
        const undo = verb === 'cancel' && waited.length ? () => void act('retry', waited) : undefined
        return done.size ? { text: t(`done.${verb}`, { count: done.size }), undo, command: jobCommand(verb, answer.done) } : null
      })
    }
    const move = (id: number, to: Place): Promise<void> =>
      told(post('/api/v1/move', { id, to }), () => ({ text: t('done.move', { id }), command: moveCommand(id, to) }))
    const set = (id: number, values: Record<string, string>): Promise<void> =>
      told(post('/api/v1/set', { ids: [id], values }), () => ({ text: t('done.set', { id }), command: setCommand(id, values) }))
    const takeCard = (index: number, use: boolean): Promise<void> =>
      told(post('/api/v1/gpus', use ? { include: [index] } : { exclude: [index] }), () => ({
        text: t(use ? 'done.include' : 'done.exclude', { index }),
        command: cardCommand(index, use),
      }))
    return { act, move, set, takeCard }
  }, [client, t])
}

export function failed(error: unknown): void {
  say({ text: error instanceof CallError ? error.message : String(error), bad: true })
}
