// The output of one run: its end first, then what is printed while one looks; what came before on demand.
import { useCallback, useEffect, useRef, useState } from 'react'
import { CallError, get } from '../api/call'
import { live } from '../api/live'
import type { LogPage } from '../api/types'
import { LogText } from '../model/logtext'

const LINES = 1000
const PAGE = 256 * 1024

export interface Source {
  text: LogText
  version: number // changes whenever the text does
  from: number
  size: number
  runs: number[]
  run: number | null
  over: boolean
  error: string
  earlier: () => Promise<number> // how many lines were put before
}

interface Facts {
  from: number
  size: number
  runs: number[]
  run: number | null
  over: boolean
  error: string
}

const NONE: Facts = { from: 0, size: 0, runs: [], run: null, over: false, error: '' }

/** `again` changes when a job begins another try. */
export function useLog(job: number, wanted: number | null, again: number, allowed: boolean): Source {
  const text = useRef(new LogText())
  const [version, setVersion] = useState(0)
  const [facts, setFacts] = useState<Facts>(NONE)

  useEffect(() => {
    const stop = new AbortController()
    text.current = new LogText()
    setFacts(NONE)
    setVersion((n) => n + 1)
    if (again === 0 || !allowed) return // it has not run, or who asks may not see it: an answer would be an error
    get<LogPage>(`/api/v1/logs/${job}`, { run: wanted, lines: LINES }, stop.signal)
      .then((page) => {
        text.current.append(page.text)
        setFacts({ from: page.from, size: page.size, runs: page.runs, run: page.run, over: page.over, error: '' })
        setVersion((n) => n + 1)
        live.follow(page.over ? null : { job, run: page.run, from: page.to })
      })
      .catch((error: unknown) => {
        if (stop.signal.aborted) return
        setFacts({ ...NONE, error: error instanceof CallError ? error.message : String(error) })
      })
    const quiet = live.hear({
      log: (piece) => {
        if (piece.job !== job || (wanted !== null && piece.run !== wanted)) return
        text.current.append(piece.text)
        setFacts((known) => ({ ...known, size: Math.max(known.size, piece.to), over: piece.over }))
        setVersion((n) => n + 1)
      },
    })
    return () => {
      stop.abort()
      quiet()
    }
  }, [job, wanted, again, allowed])

  useEffect(() => () => live.follow(null), [])

  const earlier = useCallback(async () => {
    const begin = Math.max(0, facts.from - PAGE)
    const page = await get<LogPage>(`/api/v1/logs/${job}`, { run: facts.run, from: begin, limit: facts.from - begin })
    const count = text.current.prepend(page.text)
    setFacts((known) => ({ ...known, from: page.from }))
    setVersion((n) => n + 1)
    return count
  }, [job, facts.from, facts.run])

  return { text: text.current, version, ...facts, earlier }
}
