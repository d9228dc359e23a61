// How many cards one may hold: min(max_gpu, max(min_gpu, available − gpu_left)). What is available, the engine says.
export interface Limits {
  left: number
  least: number
  most: number
}

/** What stands for min_gpu where only max_gpu is set. */
export const USUAL_LEAST = 3

/** The number of cards one may hold now. */
export const allowed = (available: number, { left, least, most }: Limits): number =>
  Math.min(most, Math.max(least, available - left))

/** A nested value by a dotted name, as `retry_config.backoff_duration`. */
export function valueAt(values: Record<string, unknown>, key: string): unknown {
  return key
    .split('.')
    .reduce<unknown>((at, part) => (at && typeof at === 'object' ? (at as Record<string, unknown>)[part] : undefined), values)
}

/** What has to be sent for these changes: dotted names as nested objects. */
export function nested(changes: Record<string, unknown>): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(changes)) {
    const parts = key.split('.')
    const last = parts.pop() ?? key
    let at = found
    for (const part of parts) {
      at[part] ??= {}
      at = at[part] as Record<string, unknown>
    }
    at[last] = value
  }
  return found
}

/** An entry of the server's table of what rules may say. */
export interface Field {
  name: string
  words: string[]
  low: number
  high: number
}

export type Kind = 'switch' | 'number' | 'list' | 'text' | readonly string[]

const KINDS: Record<string, Kind> = {
  min_gpu: 'number',
  max_gpu: 'number',
  time_limit: 'number',
  max_wait: 'number',
  'retry_config.max_retries': 'number',
}

/** Keys whose values are words, by the name that the table of fields has for them; it knows which. */
const WORDED: Record<string, string> = { 'retry_config.on_failure': 'on_failure', strangers: 'strangers', gpu_choice: 'choice' }
const MAY_BE_NONE = new Set(['gpu_choice'])

/** The control for a key: a switch, a number, a choice of words. What is not known here is told by its value. */
export function control(key: string, value: unknown, fields: readonly Pick<Field, 'name' | 'words'>[] = []): Kind {
  const known = KINDS[key]
  if (known) return known
  const words = fields.find((field) => field.name === WORDED[key])?.words
  if (words) return MAY_BE_NONE.has(key) ? ['', ...words] : words
  if (typeof value === 'boolean') return 'switch'
  if (Array.isArray(value)) return 'list'
  return typeof value === 'number' ? 'number' : 'text'
}

/** All keys of the values, those below another one with a dot. */
export function keysOf(values: Record<string, unknown>): string[] {
  return Object.entries(values).flatMap(([key, value]) =>
    value && typeof value === 'object' && !Array.isArray(value) ? Object.keys(value).map((inner) => `${key}.${inner}`) : [key],
  )
}

export const GROUPS: [string, string[]][] = [
  ['many', ['gpu_left', 'min_gpu', 'max_gpu']],
  ['which', ['use_all_gpus', 'compete_gpus', 'memory_save_mode', 'maximize_resource_utilization', 'strangers', 'gpu_choice']],
  [
    'failure',
    [
      'retry_config.max_retry_before_backoff',
      'retry_config.backoff_duration',
      'retry_config.max_retries',
      'retry_config.on_failure',
    ],
  ],
]

/** Keys under the headings above; what no heading names stands under the last. */
export function grouped(keys: readonly string[]): [string, string[]][] {
  const rest = new Set(keys)
  const found: [string, string[]][] = []
  for (const [name, wanted] of GROUPS) {
    const own = wanted.filter((key) => rest.delete(key))
    if (own.length) found.push([name, own])
  }
  if (rest.size) found.push(['other', [...rest]])
  return found
}
