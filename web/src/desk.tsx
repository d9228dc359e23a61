// What lies on the page's desk: the job that is looked at, and the dialog that is open. One of each.
import { createContext, type ReactNode, use, useMemo, useState } from 'react'
import type { Job } from './api/types'
import { EMPTY_JOB, type NewJob } from './model/command'

export type Asked =
  | { kind: 'new'; preset: NewJob }
  | { kind: 'cancel'; jobs: Job[] }
  | { kind: 'card'; index: number }
  | { kind: 'change'; job: Job }
  | { kind: 'keys' }
  | null

interface Desk {
  picked: number | null
  pick: (id: number | null) => void
  asked: Asked
  open: (asked: Asked) => void
  find: string
  setFind: (text: string) => void
  marked: ReadonlySet<number>
  mark: (ids: ReadonlySet<number>) => void
}

const Place = createContext<Desk | null>(null)

export function DeskProvider({ children }: { children: ReactNode }) {
  const [picked, pick] = useState<number | null>(null)
  const [asked, open] = useState<Asked>(null)
  const [find, setFind] = useState('')
  const [marked, mark] = useState<ReadonlySet<number>>(new Set())
  const desk = useMemo(() => ({ picked, pick, asked, open, find, setFind, marked, mark }), [picked, asked, find, marked])
  return <Place value={desk}>{children}</Place>
}

export function useDesk(): Desk {
  const desk = use(Place)
  if (!desk) throw new Error('no desk around this part')
  return desk
}

export const newJob = (preset: Partial<NewJob> = {}): Asked => ({ kind: 'new', preset: { ...EMPTY_JOB, ...preset } })
