import { expect, test } from 'vitest'
import { seenAt, slot } from '../parts/window'
import { patched } from './jobs'
import { byQueue, flat, queueName } from './lines'
import { withLines } from './queues'
import { job } from './samples'
import { axesOf, EMPTY_SWEEP, sweepPath, sweepReady, sweepText } from './sweepfile'

const shown = (lines: ReturnType<typeof flat>): string[] =>
  lines.map((line) => (line.head ? `${line.head.batch ?? ''}/${line.head.name}: ${line.head.stands.how}` : String(line.job.id)))

test('what runs comes first, then what waits, then what ended, the latest first', () => {
  const jobs = [
    job({ id: 1, state: 'failed', ended_at: 5 }),
    job({ id: 2, state: 'succeeded', ended_at: 9 }),
    job({ id: 3, state: 'queued' }),
    job({ id: 4, state: 'running' }),
  ]
  expect(shown(flat(jobs))).toEqual(['4', '3', '2', '1'])
})

test('by queues: those at work first, each in the order in which it takes its jobs, and what is in none behind its like', () => {
  const jobs = [
    job({ id: 1, queue: null, state: 'running' }),
    job({ id: 2, queue: '7/10', state: 'succeeded', place: 2 }),
    job({ id: 3, queue: '7/9', state: 'queued', place: 9 }),
    job({ id: 4, queue: '7/9', state: 'queued', place: 4, reason: { code: 'backoff', params: { left_s: 420 } } }),
    job({ id: 5, queue: 'mine', state: 'running', place: 5, gpus: [3, 1] }),
    job({ id: 6, queue: '7/2', state: 'failed', place: 6 }),
    job({ id: 7, queue: '7/2', state: 'skipped', place: 7, reason: { code: 'queue_failed', params: { job: 6 } } }),
  ]
  const lines = byQueue(jobs, jobs)
  expect(shown(lines)).toEqual([
    ...['/mine: busy', '5', '/: busy', '1', '7/9: backoff', '4', '3', '7/2: stopped', '6', '7', '7/10: over', '2'],
  ])
  expect(lines[0]?.head?.stands).toEqual({ how: 'busy', gpus: [1, 3] })
  const found = jobs.filter((one) => one.id === 3)
  expect(shown(byQueue(found, jobs))).toEqual(['7/9: backoff', '3'])
  expect(queueName('a/b')).toEqual({ batch: null, name: 'a/b' })
})

test('of a long list a few rows more than can be seen are there, and no two share an element', () => {
  expect(seenAt(0, 280, 28, 5)).toEqual({ first: 0, last: 5 })
  for (const top of [0, 27, 28 * 4321, 28 * 10_000]) {
    const seen = seenAt(top, 500, 28, 10_000)
    expect(seen.first * 28).toBeLessThanOrEqual(Math.min(top, 28 * 9999))
    expect(seen.last * 28).toBeGreaterThanOrEqual(Math.min(top + 500, 280_000))
    expect(seen.last - seen.first).toBeLessThanOrEqual(48)
    const slots = Array.from({ length: seen.last - seen.first }, (_, i) => slot(seen.first + i, seen))
    expect(new Set(slots).size).toBe(slots.length)
  }
})

test('a list in which nothing has changed is the very same list', () => {
  const known = { engine: true, jobs: [job({ id: 1 }), job({ id: 2 })] }
  expect(patched(known, [job({ id: 2 })])).toBe(known)
  const next = patched(known, [job({ id: 2, state: 'failed' }), job({ id: 3 })])
  expect(next.jobs.map((one) => `${one.id} ${one.state}`)).toEqual([
    `1 ${known.jobs[0]?.state}`,
    '2 failed',
    `3 ${job({}).state}`,
  ])
  expect(next.jobs[0]).toBe(known.jobs[0])
})

test('a block is mended in its lines and nowhere else, with the line ends of the file', () => {
  expect(withLines('a\nb\nc\n', 2, 2, 'x\ny')).toBe('a\nx\ny\nc\n')
  expect(withLines('a\r\nb\r\nc', 1, 2, 'x\ny')).toBe('x\r\ny\r\nc')
  expect(withLines('a\nb', 2, 2, 'z')).toBe('a\nz')
})

test('a sweep that is typed is the text of a job file, and values are what was typed', () => {
  const sweep = { ...EMPTY_SWEEP, command: 'run "{a}" {b}', axes: 'a: 1e-4, yes\n\nb = x y', memory: '8', name: '../x.yaml' }
  expect(axesOf(sweep.axes)).toEqual([
    ['a', ['1e-4', 'yes']],
    ['b', ['x', 'y']],
  ])
  expect(sweepText(sweep)).toBe(
    'command: "run \\"{a}\\" {b}"\nmatrix:\n  a: [1e-4, "yes"]\n  b: ["x", "y"]\njob: {gpus: 1, memory: 8GiB}\n',
  )
  expect(sweepPath(sweep, '/w')).toBe('/w/-x.yaml')
  expect(sweepPath({ ...sweep, name: ' ' }, '/w')).toBe('/w/sweep.yaml')
  expect(sweepReady(sweep)).toBe(true)
  expect(sweepReady({ ...sweep, axes: 'nothing' })).toBe(false)
})
