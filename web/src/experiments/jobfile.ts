// The job file that is edited: its text is the truth, the server says what of it would be queued.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { ask, CallError, get, post } from '../api/call'
import type { Flaw } from '../api/types'
import { say } from '../parts/toast'

const PAUSE_MS = 500 // each look is a process of its own

export interface Listed {
  path: string
  name: string
  folder: string
  batch: number | null
  modified_at: number
}

export function useJobFiles() {
  return useQuery({
    queryKey: ['jobfiles'],
    queryFn: ({ signal }) => get<{ files: Listed[]; folders: string[] }>('/api/v1/jobfiles', {}, signal),
  })
}

export interface WouldRun {
  name: string
  suite: string | null
  kind: string
  jobs: number
  run: number
  rest: string
  attach: number | null
  first: {
    name: string
    do: 'run' | 'done' | 'log' | 'not_failed'
    by: [number, number] | null
    commands: string[]
    text: string // what would become of it now
  }[]
  would: { starts: number; gpus: number[]; waits: string; more: number; chance: boolean } | null // null: no engine could say it
}

export interface Looked {
  flaws: Flaw[]
  more: number
  batches: WouldRun[]
  messages: string[]
  diff: string[]
}

interface Saved {
  text: string
  exists: boolean
}

const words = (problem: unknown): string => (problem instanceof Error ? problem.message : String(problem))

export function useJobFile(path: string | null) {
  const client = useQueryClient()
  const [saved, setSaved] = useState<Saved | null>(null)
  const [text, setTextNow] = useState('')
  const [preview, setPreview] = useState<Looked | null>(null)
  const [error, setError] = useState('') // of reading and saving
  const [unseen, setUnseen] = useState('') // why there is no preview
  const [conflict, setConflict] = useState(false)
  const [busy, setBusy] = useState(false)
  const etag = useRef<string | null>(null)
  const asked = useRef(0)
  const reading = useRef(0) // not `asked`: what is typed meanwhile must not drop the answer to a reading
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)

  const look = useCallback(
    (next: string) => {
      clearTimeout(timer.current)
      asked.current += 1
      const mine = asked.current
      timer.current = setTimeout(async () => {
        try {
          const found = await post<Looked>('/api/v1/jobfiles/preview', { text: next }, { path })
          if (mine !== asked.current) return // typed on meanwhile
          setPreview(found)
          setUnseen('')
        } catch (problem) {
          if (mine === asked.current) setUnseen(words(problem))
        }
      }, PAUSE_MS)
    },
    [path],
  )

  /** Reads the file; `own`: what was typed stays, and is compared with what there is now. */
  const read = useCallback(
    async (own?: string): Promise<void> => {
      if (path === null) return
      reading.current += 1
      const mine = reading.current
      try {
        const answer = await ask<Saved>('/api/v1/jobfiles/text', { query: { path } })
        if (mine !== reading.current) return
        etag.current = answer.etag
        setSaved(answer.data)
        setTextNow(own ?? answer.data.text)
        setConflict(false)
        setError('')
        look(own ?? answer.data.text)
      } catch (problem) {
        if (mine === reading.current) setError(words(problem))
      }
    },
    [path, look],
  )

  useEffect(() => {
    setSaved(null)
    setPreview(null)
    setTextNow('')
    setError('')
    setConflict(false)
    void read()
    return () => clearTimeout(timer.current)
  }, [read])

  const save = async (): Promise<boolean> => {
    setBusy(true)
    try {
      const put = { method: 'PUT', query: { path }, body: { text }, etag: etag.current }
      const answer = await ask<Looked>('/api/v1/jobfiles/text', put)
      etag.current = answer.etag
      setSaved({ text, exists: true })
      setPreview({ ...answer.data, diff: [] })
      setError('')
      void client.invalidateQueries({ queryKey: ['jobfiles'] })
      return true
    } catch (problem) {
      setConflict(problem instanceof CallError && problem.status === 412)
      setError(words(problem))
      return false
    } finally {
      setBusy(false)
    }
  }

  return {
    loaded: saved !== null,
    exists: saved?.exists ?? false,
    text,
    unsaved: saved !== null && (text !== saved.text || !saved.exists),
    preview,
    error: error || unseen,
    conflict,
    busy,
    setText: (next: string): void => {
      setTextNow(next)
      look(next)
    },
    save,
    reload: (): void => void read(),
    compare: (): void => void read(text),
  }
}

export type JobFile = ReturnType<typeof useJobFile>

interface Submitted {
  batches: { batch: number | null; ids?: number[] }[]
  messages: string[]
}

/** Queues what a saved file says, and tells it; with the number of the first batch that came of it. */
export function useSubmit() {
  const { t } = useTranslation()
  return async (path: string): Promise<number | null> => {
    const told = await post<Submitted>('/api/v1/run', { file: path })
    const made = told.batches.filter((one) => one.batch !== null)
    for (const one of made) say({ text: t('jobfile.submitted', { id: one.batch, count: one.ids?.length ?? 0 }) })
    if (!made.length) say({ text: told.messages.at(-1) ?? t('jobfile.nothing') })
    return made[0]?.batch ?? null
  }
}
