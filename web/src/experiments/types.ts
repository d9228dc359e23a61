// Batches and results as docs/json.md has them.
import type { State } from '../api/types'

export interface Batch {
  id: number
  name: string
  file: string | null
  suite: string | null
  sweep: boolean
  submitted_at: number
  started_at: number | null
  ended_at: number | null
  jobs: number
  counts: Partial<Record<State, number>>
  done_before: number
  left_s: number | null
}

export interface Measured {
  value: number
  params: Record<string, string>
  job: number | null
}

export interface Cell {
  n: number
  mean: number
  std: number | null
  best: boolean
  values: number[]
  runs: Measured[]
}

export interface ResultGroup {
  params: Record<string, string>
  runs: number
  metrics: Record<string, Cell>
}

export interface Missing {
  label: string
  params: Record<string, string>
  job: number | null
  state: string | null
  metric: string | null
  why: string // `reason` in words
  reason: { code: string }
}

export interface Results {
  keys: string[]
  seed_keys: string[]
  metrics: { name: string; best: 'max' | 'min' }[]
  groups: ResultGroup[]
  missing: Missing[]
  notes: string[]
  messages: string[]
}
