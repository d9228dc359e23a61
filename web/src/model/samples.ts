// A job, a card and a process on it for tests, with what a test does not care about filled in.
import type { Card, Holder, Job } from '../api/types'
import type { Seen } from './jobs'

export const NOTHING_SEEN: Seen = { at: 0, first: false, jobs: new Set() }

export const job = (over: Partial<Job>): Job => ({
  id: 1,
  name: 'a',
  queue: null,
  batch: 1,
  state: 'queued',
  intent: 'run',
  attempt: 0,
  retries: 0,
  exit_code: null,
  error_type: null,
  submitted_at: 0,
  started_at: null,
  ended_at: null,
  ran_s: null,
  reason: null,
  commands: [],
  memory_mib: null,
  share: false,
  gpu_request: [1, 1],
  gpus: [],
  gpu_uuids: [],
  priority: 0,
  tags: [],
  time_limit: null,
  workdir: '/',
  log: null,
  retry: null,
  place: over.id ?? 1,
  retry_of: null,
  params: {},
  estimate: null,
  ...over,
})

export const holder = (over: Partial<Holder>): Holder => ({
  pid: 1,
  user: 'alice',
  used_mib: 1024,
  name: 'python',
  exe: '',
  run: null,
  ...over,
})

export const card = (over: Partial<Card>): Card => ({
  index: 0,
  uuid: 'GPU-0',
  name: 'RTX 4090',
  total_mib: 24576,
  used_mib: 0,
  free_mib: 24576,
  available_mib: 24576,
  utilization: 0,
  temperature: 30,
  power_w: 20,
  state: 'ok',
  error: '',
  excluded: false,
  quarantine: null,
  refusal: null,
  runs: [],
  holders: [],
  free_at: null,
  free_by: null,
  ...over,
})
