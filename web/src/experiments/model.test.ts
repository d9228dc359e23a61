import { expect, test } from 'vitest'
import type { Job, State } from '../api/types'
import { progress, progressOf, segments } from '../model/sweeps'
import {
  axes,
  cellFinder,
  columnKey,
  fewer,
  folds,
  lacking,
  lookOfBatch,
  lookOfFold,
  nameOf,
  newest,
  resultsCommand,
  runCommand,
  table,
  ticks,
} from './model'
import type { Cell, Results } from './types'

const job = (id: number, state: State, params: Record<string, string> = {}, more: Partial<Job> = {}): Job =>
  ({ id, state, params, name: `j${id}`, reason: null, retry_of: null, gpus: [], attempt: 1, ran_s: null, ...more }) as Job

const SWEEP = ['A', 'B'].flatMap((config, c) =>
  ['x', 'y'].flatMap((algorithm, a) =>
    ['1', '2', '3'].map((seed, s) => job(c * 6 + a * 3 + s + 1, 'succeeded', { config, algorithm, seed })),
  ),
)

test('jobs that differ in the seed only are one group, named by what differs', () => {
  const groups = folds(SWEEP)
  expect(groups.map((group) => group.jobs.length)).toEqual([3, 3, 3, 3])
  expect(groups[1]?.params).toEqual([
    ['config', 'A'],
    ['algorithm', 'y'],
  ])
  expect(axes(SWEEP)).toEqual([
    ['config', 2],
    ['algorithm', 2],
    ['seed', 3],
  ])
})

test('jobs without parameters are not taken for one group', () => {
  expect(folds([job(1, 'queued'), job(2, 'queued')])).toHaveLength(2)
})

test('what was tried again counts as its last try', () => {
  const jobs = [
    job(1, 'failed', { seed: '1' }),
    job(2, 'succeeded', { seed: '1' }, { retry_of: 1 }),
    job(3, 'failed', { seed: '2' }),
  ]
  expect(newest(jobs).map((one) => one.id)).toEqual([2, 3])
})

test('a group is failed as soon as one of it is, and done only when all are, or were before', () => {
  const before = job(3, 'skipped', {}, { reason: { code: 'done_before', params: {} } })
  expect(lookOfFold([job(1, 'succeeded'), job(2, 'failed'), job(3, 'running')])).toBe('failed')
  expect(lookOfFold([job(1, 'succeeded'), job(2, 'running')])).toBe('running')
  expect(lookOfFold([job(1, 'succeeded'), before])).toBe('succeeded')
  expect(lookOfFold([job(1, 'skipped')])).toBe('skipped')
})

test('a batch looks as the worst of it that can still change, and done once all are done or were before', () => {
  expect(lookOfBatch({ jobs: 3, counts: { succeeded: 1, running: 1, failed: 1 } })).toBe('running')
  expect(lookOfBatch({ jobs: 61, counts: { succeeded: 60, failed: 1 } })).toBe('failed')
  expect(lookOfBatch({ jobs: 2, counts: { skipped: 2 } })).toBe('succeeded')
  expect(lookOfBatch({ jobs: 2, counts: { cancelled: 2 } })).toBe('cancelled')
})

test('what was done before is a part of its own, told from jobs as from counts', () => {
  const before = job(1, 'skipped', {}, { reason: { code: 'done_before', params: {} } })
  const counted = { before: 1, done: 1, failed: 0, running: 0, waiting: 1, dropped: 1 }
  expect(progress([before, job(2, 'skipped'), job(3, 'succeeded'), job(4, 'queued')])).toEqual(counted)
  expect(progressOf({ skipped: 2, succeeded: 1, queued: 1 }, 1)).toEqual(counted)
  expect(segments(progressOf({ skipped: 1, succeeded: 1 }, 1)).map((one) => one.look)).toEqual(['before', 'done'])
})

test('columns are made of a key with few values, and only where another is left for the rows', () => {
  expect(columnKey(SWEEP)).toBe('config')
  expect(columnKey(SWEEP.filter((one) => one.params.config === 'A'))).toBeNull()
})

const cell = (n: number, mean: number, best = false): Cell => ({ n, mean, std: 1, best, values: [mean], runs: [] })
const group = (config: string, algorithm: string, made: Cell | null, runs = 3) => ({
  params: { config, algorithm },
  runs,
  metrics: made ? { acc: made } : ({} as Record<string, Cell>),
})
const RESULTS: Results = {
  keys: ['config', 'algorithm'],
  seed_keys: ['seed'],
  metrics: [{ name: 'acc', best: 'max' }],
  groups: [group('A', 'x', cell(3, 1)), group('A', 'y', cell(2, 2, true)), group('B', 'x', cell(3, 5)), group('B', 'y', null)],
  missing: [],
  notes: [],
  messages: [],
}

test('a table has a line per group, with a key across one for all its values', () => {
  expect(table(RESULTS, null).lines.map((line) => line.name)).toEqual(['A · x', 'A · y', 'B · x', 'B · y'])
  const wide = table(RESULTS, 'config')
  expect(wide.columns.map((column) => column.value)).toEqual(['A', 'B'])
  expect(wide.lines.map((line) => [line.name, ...line.cells.map((one) => one?.mean ?? null)])).toEqual([
    ['x', 1, 5],
    ['y', 2, null],
  ])
  expect(wide.most).toEqual([3, 3])
})

test('the figures of a job are found by what it is made of, whatever its seed', () => {
  const found = cellFinder(RESULTS, 'acc')
  expect(found(job(1, 'succeeded', { algorithm: 'y', seed: '9', config: 'A' }))?.mean).toBe(2)
  expect(found(job(2, 'failed', { config: 'B', algorithm: 'y', seed: '1' }))).toBeUndefined()
  expect(found(job(3, 'failed', { config: 'C', algorithm: 'y' }))).toBeUndefined()
  expect(cellFinder(undefined, 'acc')(job(1, 'succeeded'))).toBeUndefined()
})

test('a mean of fewer runs than others have, or than it should have, is marked', () => {
  expect(fewer(cell(2, 1), 3, 3)).toBe(true)
  expect(fewer(cell(2, 1), 2, 3)).toBe(true)
  expect(fewer(cell(2, 1), 3, 2)).toBe(true)
  expect(fewer(cell(3, 1), 3, 3)).toBe(false)
  expect(fewer(null, 3, 3)).toBe(false)
})

test('what is missing is told apart: unfinished, failed, without a value; what was run again is not missing', () => {
  const one = (code: string, state: string, metric: string | null = null) => ({
    label: '',
    params: {},
    job: 1,
    state,
    metric,
    why: '',
    reason: { code },
  })
  const missing = [
    one('unfinished', 'running'),
    one('failed_as', 'failed'),
    one('no_line', 'succeeded', 'acc'),
    one('no_line', 'succeeded', 'other'),
    one('instead', 'failed'),
  ]
  expect(lacking(missing, 'acc')).toEqual({ unfinished: 1, failed: 1, other: 1 })
})

test('ticks are round and cover the range', () => {
  expect(ticks(40.65, 51.64)).toEqual([40, 45, 50, 55])
  expect(ticks(0.912, 0.931)).toEqual([0.91, 0.915, 0.92, 0.925, 0.93, 0.935])
  expect(ticks(5, 5).length).toBeGreaterThan(1)
  expect(ticks(-3, -3)[0]).toBeLessThanOrEqual(-3)
  expect(ticks(0, 0)).toEqual(expect.arrayContaining([0]))
})

test('float noise is not spread over the axis', () => {
  const marks = ticks(0.2, 0.20000000000000007)
  expect(Math.max(...marks) - Math.min(...marks)).toBeGreaterThan(0.001)
  expect(new Set(marks).size).toBe(marks.length)
  expect(marks.filter((mark) => String(mark).length > 6)).toEqual([])
})

test('commands are those of the command line', () => {
  expect(resultsCommand({ batch: 12, metrics: ['loss=a ([0-9.]+)'], across: 'config' }, 'latex')).toBe(
    "jostle results 12 --metric 'loss=a ([0-9.]+)' --across config --format latex",
  )
  expect(runCommand('/a b/s.yaml', 'gamma', true)).toBe("jostle run --detach '/a b/s.yaml' --suite gamma")
})

test('the name of a job is what its label has in brackets', () => {
  expect(nameOf({ label: 'job 12 (a (b))', job: 12 })).toBe('a (b)')
  expect(nameOf({ label: '/logs/a.log', job: null })).toBe('/logs/a.log')
})
