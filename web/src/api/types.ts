// The values of docs/json.md and docs/api.md as this page reads them. Sizes are MiB, durations seconds, instants seconds since 1970.

export type Rights = 'all' | 'read'

export type Params = Record<string, unknown>

export interface Against {
  code: string
  text?: string
  params: Params
}

export interface Refusal extends Against {
  index: number
  uuid: string
}

export interface Reason extends Against {
  gpus?: Refusal[]
  decides?: [number, number] // where in the text what decides begins and ends
}

export type State = 'queued' | 'starting' | 'running' | 'stopping' | 'succeeded' | 'failed' | 'cancelled' | 'skipped'

/** Instants, about; null: no telling. A job that waits has only the first two. */
export interface Estimate {
  starts_at: number | null
  gpus: number[] | null
  ends_at: number | null
  earliest_at: number | null
  latest_at: number | null
  limit_at: number | null // its time limit ends it then
  runs: number // like it, that this is from
}

export interface Job {
  id: number
  name: string
  queue: string | null
  batch: number
  state: State
  intent: string
  attempt: number
  retries: number
  exit_code: number | null
  error_type: string | null
  submitted_at: number
  started_at: number | null
  ended_at: number | null
  ran_s: number | null
  reason: Reason | null
  commands: string[]
  memory_mib: number | null
  share: boolean
  gpu_request: number[]
  resize?: 'restart' | 'signal' | null // it agreed to other cards while it runs
  when_stranger?: 'keep' | 'requeue' | 'pause'
  leg?: number | null // how often it got other cards, and once
  inside?: number | null // the allocation on whose cards it runs
  cpus: number | null
  host_memory_mib: number | null
  counters: Record<string, number>
  nice: number
  gpus: number[]
  gpu_uuids: string[]
  priority: number
  tags: string[]
  time_limit: number | null
  workdir: string
  log: string | null
  retry: { max?: number | null } | null
  place: number
  retry_of: number | null
  params: Record<string, string>
  estimate: Estimate | null
}

export interface Ps {
  engine: boolean
  jobs: Job[]
  more?: { waiting: number; last: number | null; failed: number; ended: number }
}

export interface Run {
  n: number
  uni_id: string
  state: string
  outcome: string | null
  started_at: number
  ended_at: number | null
  ran_s: number | null
  exit_code: number | null
  signal: number | null
  error_type: string | null
  log: string
  peak_mib: number | null
  rss_mib: number | null
  memory_mib: number | null
  gpus: number[]
  profile: Profile | null // of one that lives: until now
}

/** How a run used its cards, as far as it was seen. */
export interface Profile {
  load_mean: number | null
  load_p95: number | null
  memory_p95_mib: number | null
  idle_share: number | null
  gpu_mib: number | null
  curve: { step_s: number; mib: (number | null)[] } | null
  shared: { user: string | null; job: number | null; for_s: number }[]
}

export interface StoreEvent {
  seq: number
  at: number
  kind: string
  batch: number | null
  job: number | null
  run: number | null
  data: Record<string, unknown> & {
    reason?: Reason
    gpus?: number[]
    gpu?: number
    exit_code?: number | null
    error_type?: string | null
  }
}

/** One process of a run that lives; null: it cannot be seen, or is on no card. */
export interface RunProcess {
  pid: number
  command: string
  cpu_percent: number | null // of one core, over its life
  cpu_s: number | null
  rss_mib: number | null
  gpus: number[]
  gpu_mib: number | null
  gpu_peak_mib: number | null
  ran_s: number | null
}

export interface Story {
  job: Job
  runs: Run[]
  events: StoreEvent[]
  needs: { id: number; state: string; name: string }[]
  processes: RunProcess[]
}

export interface Holder {
  pid: number
  user: string
  used_mib: number | null
  name: string
  exe: string
  sm: number | null // % of the card's processors; null: the driver does not say, or not yet
  run: string | null
}

export interface Card {
  index: number
  uuid: string
  name: string
  pci: string // '': the driver does not say
  total_mib: number
  used_mib: number
  free_mib: number
  available_mib: number
  utilization: number | null
  temperature: number | null
  power_w: number | null
  power_limit_w?: number | null
  fan?: number | null // percent
  state: string
  error: string
  excluded: boolean
  quarantine?: string | null
  refusal: Against | null
  runs: string[]
  holders: Holder[]
  idle_s?: number | null // held without load for long; null: it is not, or nobody knows
  free_at: number | null // about; null: no telling, or it is free
  free_by: number | null // at the latest, by time limits
}

export interface Cards {
  engine: boolean
  gpus: Card[]
  more: number | null // how many more may be held; null: any number
  spec: string
  age_s: number | null
  read_at: number | null // when a card could be read last, if none can and that is known
  error: string
}

/** Who had a card for a while: a run of ours, or somebody else. */
export interface Span {
  began_at: number
  ended_at: number | null // null: still there
  job: number | null
  run: number | null
  name: string | null
  outcome: string | null
  user: string | null // '': somebody nobody can see
  pid: number | null
}

export interface CardHistory {
  index: number
  uuid: string
  name: string
  total_mib: number
  load: (number | null)[]
  used_mib: (number | null)[]
  spans: Span[]
  left_out: number
  before: Span | null
  free_since: number | null
  idle_since: number | null
}

export interface History {
  began_at: number
  ended_at: number
  step_s: number
  at: number // now, by the clock of the host
  error: string
  gpus: CardHistory[]
}

export interface Status {
  running: boolean
  pid: number | null
  version: string
  uptime_s: number | null
  hold: string
  hold_text?: string
  probe: string
  counts: Record<string, number>
  user?: string
  host?: string
  paths: Record<string, string | null>
}

export interface HostFigures {
  total_human?: string
  used_human?: string
}

/** `GET /api/gpu`, as far as it is shown: the host, and what only it says of processes. */
export interface Overview {
  total_processes: number
  active_users: string[]
  total_memory_human?: string
  used_memory_human?: string
  gpus: { processes?: { pid: number; running_time: number | null; command: string | null }[] }[]
  host: { hostname: string; platform?: string; cpu?: { count: number; percent: number | null }; memory?: HostFigures }
}

export interface LogPage {
  job: number
  run: number
  runs: number[]
  path: string
  from: number
  to: number
  size: number
  text: string
  over: boolean
}

export interface Flaw {
  file?: string
  line?: number
  text: string
}

export type Mode = 'single' | 'multi'

export interface Process {
  id: number
  commands: string[]
  gpu_count: number
  memory: number
}

export interface Queue {
  id: number
  processes: Process[]
}

export interface CommandFile {
  text: string
  queues: Queue[]
  flaws: Flaw[]
  broken: BrokenBlock[]
  config_name: string
  file_path: string
  exists: boolean
}

/** A block that is not understood, as it stands in the file. */
export interface BrokenBlock {
  line: number // its first and last line, from 1
  last: number
  text: string
  queue: number | null // where it seems to belong
  flaws: Flaw[]
}

export interface Preview {
  text: string
  queues: Queue[]
  flaws: Flaw[]
  broken: BrokenBlock[]
  tasks: number
  diff: string[]
}

export interface Config {
  index: number
  name: string
  file_path: string
  file_name: string
  exists: boolean
}

export interface Scheduler {
  workspace: string
  pid: number
  mode: Mode
  config_index: number
  state: string
  started_at: string | number | null
  total_tasks: number
  pending_tasks: number
  running_tasks: number
  completed_tasks: number
  failed_tasks: number
  last_error: string | null
  last_error_kind?: 'task' | 'settings' | 'own' | null
  queues: Record<string, SchedulerQueue>
  [more: string]: unknown
}

export interface SchedulerQueue {
  id: number | string
  status: string
  total_tasks: number
  completed_tasks: number
  failed_tasks: number
  running_tasks: number
  pending_tasks: number
  current_gpu: number | null
  last_error: string | null
}

export interface Setting {
  value: unknown
  requires_restart: boolean
  warning: string | null
  description: string
}
