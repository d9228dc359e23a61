// The last line that each running job has printed. One job is asked at a time, in turn, so many jobs cost no more than one.
import { useEffect, useState } from 'react'
import { plain } from '../model/ansi'
import { LogText } from '../model/logtext'
import { get } from './call'
import { useLive, useRights } from './hooks'
import type { Job, LogPage } from './types'

const EVERY_MS = 2000
const MOST_JOBS = 12
const END_BYTES = 2048

interface Tail {
  attempt: number
  size: number
  line: string
}

/** The end of a log by its size as it was known; what is there now tells the next size. */
async function lookAt(id: number, size: number): Promise<LogPage> {
  return get<LogPage>(`/api/v1/logs/${id}`, { from: Math.max(0, size - END_BYTES), limit: size ? 1 << 16 : 1 })
}

function lastLine(text: string): string {
  const log = new LogText()
  log.append(text)
  return plain(log.lines.findLast((line) => line.text.trim() !== '')?.text ?? '').slice(0, 300)
}

export function useTails(running: readonly Job[]): ReadonlyMap<number, string> {
  const { link } = useLive('link')
  const { mayWrite } = useRights()
  const [tails, setTails] = useState<ReadonlyMap<number, Tail>>(new Map())
  const asked = mayWrite && link === 'live' ? running.slice(0, MOST_JOBS) : [] // who may only look sees no output
  const names = asked.map((job) => `${job.id}.${job.attempt}`).join()
  useEffect(() => {
    if (!names) return
    const runs = names.split(',').map((name) => name.split('.').map(Number) as [number, number])
    const known = new Map<number, Tail>()
    let turn = 0
    let over = false
    async function next(): Promise<void> {
      const [id, attempt] = runs[turn % runs.length] ?? [0, 0]
      turn += 1
      if (document.visibilityState !== 'visible') return
      try {
        let page = await lookAt(id, known.get(id)?.size ?? 0)
        if (!known.has(id) && page.size > 0) page = await lookAt(id, page.size)
        if (over) return
        known.set(id, { attempt, size: page.size, line: lastLine(page.text) || (known.get(id)?.line ?? '') })
        setTails(new Map(known))
      } catch {
        // it has ended, or nothing was printed yet: the row says so itself
      }
    }
    void next()
    const timer = setInterval(() => void next(), EVERY_MS)
    return () => {
      over = true
      clearInterval(timer)
    }
  }, [names])
  return new Map([...tails].map(([id, tail]) => [id, tail.line]))
}
