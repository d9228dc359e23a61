// A sweep as a person types it into a form, as the text of a job file.

export interface NewSweep {
  command: string
  axes: string // a line each: `lr: 1e-4, 3e-4`
  name: string
  folder: string
  gpus: number
  memory: string // GiB, empty for the whole card
}

export const EMPTY_SWEEP: NewSweep = { command: '', axes: '', name: '', folder: '', gpus: 1, memory: '' }

/** Numbers stay as they were typed; every other value is a text, whatever YAML would take it for. */
const value = (text: string): string => (/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text) ? text : JSON.stringify(text))

/** The keys and values that are typed; what is no such line is left out. */
export function axesOf(text: string): [string, string[]][] {
  return text.split('\n').flatMap((line): [string, string[]][] => {
    const [, name, values] = /^\s*([A-Za-z_][\w-]*)\s*[:=]\s*(.+)$/.exec(line) ?? []
    const each = values?.split(/[,，]\s*|\s+/).filter(Boolean) ?? []
    return name && each.length ? [[name, each]] : []
  })
}

export function sweepText(sweep: NewSweep): string {
  const lines = [`command: ${JSON.stringify(sweep.command.trim())}`, 'matrix:']
  for (const [name, values] of axesOf(sweep.axes)) lines.push(`  ${name}: [${values.map(value).join(', ')}]`)
  const job = [`gpus: ${sweep.gpus}`]
  if (sweep.memory && sweep.gpus > 0) job.push(`memory: ${sweep.memory}GiB`)
  lines.push(`job: {${job.join(', ')}}`)
  return `${lines.join('\n')}\n`
}

export const sweepReady = (sweep: NewSweep): boolean => sweep.command.trim() !== '' && axesOf(sweep.axes).length > 0

/** Where it is kept: a name that is one step of a path. */
export function sweepPath(sweep: NewSweep, folder: string): string {
  const stem =
    sweep.name
      .trim()
      .replace(/\.ya?ml$/, '')
      .replaceAll(/[/\0]/g, '-')
      .replace(/^\.+/, '') || 'sweep'
  return `${folder}/${stem}.yaml`
}
