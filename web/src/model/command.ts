// Every act of this page as the command that does the same.
import type { Job } from '../api/types'
import { typedIds } from './ids'
import type { Place } from './place'

const SAFE = /^[A-Za-z0-9_@%+=:,./-]+$/

/** One word for a POSIX shell. */
export const quoted = (word: string): string => (SAFE.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)

export type JobAct = 'cancel' | 'retry' | 'hold' | 'unhold' | 'logs' | 'why' | 'show'

export const jobCommand = (act: JobAct, ids: readonly number[]): string => `jostle ${act} ${typedIds(ids)}`

export const moveCommand = (id: number, to: Place): string => `jostle move ${id} ${Object.entries(to).flat().join(' ')}`

export const setCommand = (id: number, values: Record<string, string>): string =>
  `jostle set ${id} ${Object.entries(values)
    .map(([key, value]) => quoted(`${key}=${value}`))
    .join(' ')}`

export const cardCommand = (index: number, use: boolean): string => `jostle gpus ${use ? '--include' : '--exclude'} ${index}`

/** What changes a file of a workspace has no verb of its own: the same call with the token, on this host. */
export function callCommand(method: string, url: string, body?: unknown): string {
  const sent = body === undefined ? '' : ` -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body))}`
  return `curl -X ${method} -H "Authorization: Bearer $(jostle web --token)"${sent} ${quoted(url)}`
}

/** A file changed by these lines of a unified diff. */
export const patchCommand = (path: string, diff: readonly string[]): string =>
  [`patch ${quoted(path)} <<'JOSTLE_END'`, ...diff, 'JOSTLE_END'].join('\n')

export interface NewJob {
  command: string
  name: string
  gpus: number
  memory: string // GiB, empty for the whole card
  share: boolean
  queue: string
  retry: number
  workdir: string
}

export const EMPTY_JOB: NewJob = { command: '', name: '', gpus: 1, memory: '', share: false, queue: '', retry: 0, workdir: '' }

export const complete = (job: NewJob): boolean => job.command.trim() !== '' && job.workdir.startsWith('/')

/** A new job like an old one, to be changed before it is queued. */
export const like = (job: Job): Partial<NewJob> => ({
  command: job.commands.join(' && '),
  name: job.name,
  gpus: job.gpu_request[0] ?? 1,
  memory: job.memory_mib === null ? '' : String(Math.round((job.memory_mib / 1024) * 10) / 10),
  share: job.share,
  queue: job.queue ?? '',
  workdir: job.workdir,
})

/** What `POST /api/v1/add` takes: the keys of a job in a job file. */
export function addBody(job: NewJob): Record<string, unknown> {
  const body: Record<string, unknown> = { run: job.command, gpus: job.gpus }
  if (job.name) body.name = job.name
  if (job.memory && job.gpus > 0) body.memory = `${job.memory}GiB`
  if (job.share && job.memory && job.gpus > 0) body.share = true
  if (job.queue) body.queue = job.queue
  if (job.retry > 0) body.retry = job.retry
  if (job.workdir) body.workdir = job.workdir
  return body
}

export function addCommand(job: NewJob): string {
  const words = ['jostle add']
  if (job.gpus !== 1) words.push(`-g ${job.gpus}`)
  if (job.memory && job.gpus > 0) words.push(`-m ${quoted(`${job.memory}GiB`)}`)
  if (job.share && job.memory && job.gpus > 0) words.push('--share')
  if (job.queue) words.push(`-q ${quoted(job.queue)}`)
  if (job.name) words.push(`-n ${quoted(job.name)}`)
  if (job.retry > 0) words.push(`--retry ${job.retry}`)
  if (job.workdir) words.push(`--workdir ${quoted(job.workdir)}`)
  return `${words.join(' ')} -- ${quoted(job.command)}`
}

export interface NewAllocation {
  name: string
  gpus: string // `2`, `1-4`
  memory: string // GiB, empty for whole cards
  time: string // `2h`, empty: until it is released
  idle: string // `30m`, empty: never released for standing idle
}

export const EMPTY_ALLOCATION: NewAllocation = { name: '', gpus: '1', memory: '', time: '', idle: '' }

export function allocCommand({ name, gpus, memory, time, idle }: NewAllocation): string {
  const words = ['jostle alloc', quoted(name.trim()), `-g ${quoted(gpus.trim() || '1')}`]
  if (memory) words.push(`-m ${quoted(`${memory}GiB`)}`)
  if (time.trim()) words.push(`--for ${quoted(time.trim())}`)
  if (idle.trim()) words.push(`--release-idle ${quoted(idle.trim())}`)
  return words.join(' ')
}

export const releaseCommand = (name: string): string => `jostle release ${quoted(name)}`

/** In its directory, which is that of whoever types it. */
export function startCommand(name: string, run: string, workdir: string, beside: boolean, gpus = ''): string {
  const words = ['jostle start', quoted(name)]
  if (beside) words.push('--beside')
  if (gpus.trim()) words.push(`-g ${quoted(gpus.trim())}`)
  if (workdir) words.push(`--workdir ${quoted(workdir)}`)
  return run.trim() ? `${words.join(' ')} -- ${quoted(run)}` : words.join(' ')
}

export const limitsCommand = (name: string, most: number | null): string =>
  most === null ? `jostle limits clear ${name}` : `jostle limits set ${name}=${most}`

export const testCommand = (channel: string): string => `jostle notify test ${quoted(channel)}`

export function competeCommand(mode: string, index: number, workspace: string): string {
  const config = index ? ` --config-index ${index}` : ''
  return `jostle compete${mode === 'multi' ? ' --mode multi' : ''}${config} ${quoted(workspace)}`
}
