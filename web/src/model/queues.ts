// The form's own picture of a command file: moves keep order, ids follow the place.
import type { Process, Queue } from '../api/types'

export interface Spot {
  queue: number // place in the list, not its id
  process: number
}

/** A text with other lines in the place of those from `first` to `last`, counted from 1; line ends stay what they were. */
export function withLines(text: string, first: number, last: number, lines: string): string {
  const each = text.split(/(?<=\r?\n)/)
  const end = each[last - 1]?.match(/\r?\n$/)?.[0] ?? ''
  return [...each.slice(0, first - 1), lines.replaceAll('\n', end === '\r\n' ? '\r\n' : '\n') + end, ...each.slice(last)].join('')
}

export const blank = (mode: string): Process => ({ id: 1, commands: [''], gpu_count: mode === 'multi' ? 2 : 1, memory: 0 })

const renumbered = (queues: Queue[]): Queue[] =>
  queues.map((queue) => ({ ...queue, processes: queue.processes.map((process, i) => ({ ...process, id: i + 1 })) }))

export function moved(queues: readonly Queue[], from: Spot, to: Spot): Queue[] {
  const next = queues.map((queue) => ({ ...queue, processes: [...queue.processes] }))
  const [process] = next[from.queue]?.processes.splice(from.process, 1) ?? []
  const target = next[to.queue]
  if (!process || !target) return [...queues]
  target.processes.splice(Math.max(0, Math.min(to.process, target.processes.length)), 0, process)
  return renumbered(next.filter((queue) => queue.processes.length > 0))
}

/** One place up or down; over the edge of its queue into the next one. */
export function nudged(queues: readonly Queue[], at: Spot, by: 1 | -1): Queue[] {
  const queue = queues[at.queue]
  if (!queue) return [...queues]
  const place = at.process + by
  if (place >= 0 && place < queue.processes.length) return moved(queues, at, { queue: at.queue, process: place })
  const neighbour = queues[at.queue + by]
  if (!neighbour) return [...queues]
  return moved(queues, at, { queue: at.queue + by, process: by > 0 ? 0 : neighbour.processes.length })
}

export function changed(queues: readonly Queue[], at: Spot, next: Partial<Process>): Queue[] {
  return queues.map((queue, q) =>
    q === at.queue
      ? { ...queue, processes: queue.processes.map((process, p) => (p === at.process ? { ...process, ...next } : process)) }
      : queue,
  )
}

export function added(queues: readonly Queue[], queue: number | null, mode: string): Queue[] {
  if (queue === null) {
    const id = Math.max(0, ...queues.map((one) => Number(one.id) || 0)) + 1
    return [...queues, { id, processes: [blank(mode)] }]
  }
  return renumbered(queues.map((one, q) => (q === queue ? { ...one, processes: [...one.processes, blank(mode)] } : one)))
}

export function removed(queues: readonly Queue[], at: Spot): Queue[] {
  return renumbered(
    queues
      .map((queue, q) => (q === at.queue ? { ...queue, processes: queue.processes.filter((_, p) => p !== at.process) } : queue))
      .filter((queue) => queue.processes.length > 0),
  )
}

/** Commands without text would make an empty block, so they are not sent. */
export function sendable(queues: readonly Queue[]): Queue[] {
  return renumbered(
    queues
      .map((queue) => ({
        ...queue,
        processes: queue.processes
          .map((process) => ({ ...process, commands: process.commands.filter((command) => command.trim() !== '') }))
          .filter((process) => process.commands.length > 0),
      }))
      .filter((queue) => queue.processes.length > 0),
  )
}
