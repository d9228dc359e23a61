// The command file that is edited: its text is the truth, the form is made of it, the server says what it would be.
import { useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import { ask, CallError, post } from '../api/call'
import type { CommandFile, Mode, Preview, Queue } from '../api/types'
import { sendable } from '../model/queues'

const PAUSE_MS = 300

export interface Draft {
  loaded: boolean
  text: string
  saved: string
  queues: Queue[]
  preview: Preview | null
  file: CommandFile | null
  error: string
  conflict: boolean
  busy: boolean
  setText: (text: string) => void
  setQueues: (queues: Queue[]) => void
  save: () => Promise<boolean>
  reload: () => void
}

export function useDraft(mode: Mode, index: number): Draft {
  const client = useQueryClient()
  const [file, setFile] = useState<CommandFile | null>(null)
  const [text, setTextNow] = useState('')
  const [queues, setQueuesNow] = useState<Queue[]>([])
  const [preview, setPreview] = useState<Preview | null>(null)
  const [error, setError] = useState('')
  const [conflict, setConflict] = useState(false)
  const [busy, setBusy] = useState(false)
  const etag = useRef<string | null>(null)
  const asked = useRef(0)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)

  const judge = useCallback(
    (body: { text: string; queues?: Queue[] }) => {
      clearTimeout(timer.current)
      asked.current += 1
      const mine = asked.current
      timer.current = setTimeout(async () => {
        try {
          const next = await post<Preview>(`/api/v1/commands/${mode}/preview`, body, { config_index: index })
          if (mine !== asked.current) return // typed on meanwhile
          setPreview(next)
          setError('')
          if (body.queues) setTextNow(next.text)
          else setQueuesNow(next.queues)
        } catch (problem) {
          if (mine === asked.current) setError(problem instanceof Error ? problem.message : String(problem))
        }
      }, PAUSE_MS)
    },
    [mode, index],
  )

  const reload = useCallback(() => {
    asked.current += 1
    const mine = asked.current
    ask<CommandFile>(`/api/v1/commands/${mode}`, { query: { config_index: index } })
      .then((answer) => {
        if (mine !== asked.current) return
        etag.current = answer.etag
        setFile(answer.data)
        setTextNow(answer.data.text)
        setQueuesNow(answer.data.queues)
        setConflict(false)
        setError('')
        judge({ text: answer.data.text })
      })
      .catch((problem: unknown) => setError(problem instanceof Error ? problem.message : String(problem)))
  }, [mode, index, judge])

  useEffect(() => {
    setFile(null)
    setPreview(null)
    setTextNow('')
    setQueuesNow([])
    reload()
    return () => clearTimeout(timer.current)
  }, [reload])

  const save = async (): Promise<boolean> => {
    setBusy(true)
    try {
      const answer = await ask<unknown>(`/api/v1/commands/${mode}`, {
        method: 'PUT',
        query: { config_index: index },
        body: { text },
        etag: etag.current,
      })
      etag.current = answer.etag ?? etag.current
      setFile((known) => known && { ...known, text, exists: true })
      setError('')
      await client.invalidateQueries({ queryKey: ['configs'] })
      return true
    } catch (problem) {
      if (problem instanceof CallError && problem.status === 412) setConflict(true)
      setError(problem instanceof Error ? problem.message : String(problem))
      return false
    } finally {
      setBusy(false)
    }
  }

  return {
    loaded: file !== null,
    text,
    saved: file?.text ?? '',
    queues,
    preview,
    file,
    error,
    conflict,
    busy,
    setText: (next) => {
      setTextNow(next)
      judge({ text: next })
    },
    setQueues: (next) => {
      setQueuesNow(next)
      judge({ text, queues: sendable(next) })
    },
    save,
    reload,
  }
}
