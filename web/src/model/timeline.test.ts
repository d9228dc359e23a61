import { expect, test } from 'vitest'
import type { CardHistory, Span } from '../api/types'
import { job } from './samples'
import { bars, coming, curve, sharings, shownFrom } from './timeline'

const span = (over: Partial<Span>): Span => ({
  began_at: 0,
  ended_at: null,
  job: null,
  run: null,
  name: null,
  outcome: null,
  user: 'bob',
  pid: 1,
  ...over,
})

const card = (spans: Span[], idle_since: number | null = null): CardHistory => ({
  index: 0,
  uuid: 'A',
  name: '',
  total_mib: 1,
  load: [],
  used_mib: [],
  spans,
  left_out: 0,
  before: null,
  free_since: null,
  idle_since,
})

test('what was before, or ended before, is cut off; what is still there goes up to now', () => {
  const found = bars(
    [card([span({ ended_at: 40 })]), card([span({ began_at: 20 }), span({ began_at: 70, ended_at: 80 })])],
    50,
    100,
  )
  expect(found.map(({ row, from, to }) => [row, from, to])).toEqual([
    [1, 50, 100],
    [1, 70, 80],
  ])
})

test('those that share a card at one time stand in lanes of their own, others one after another in one', () => {
  const shared = [span({ began_at: 10 }), span({ began_at: 20, ended_at: 30 }), span({ began_at: 30, ended_at: 40 })]
  expect(bars([card(shared)], 0, 100).map(({ lane, lanes }) => [lane, lanes])).toEqual([
    [0, 2],
    [1, 2],
    [1, 2],
  ])
})

test('a stranger who holds a card without using it is told apart from then on; our own runs are not', () => {
  expect(bars([card([span({ began_at: 10 })], 60)], 0, 100).map(({ from, to, idle }) => [from, to, idle])).toEqual([
    [10, 60, false],
    [60, 100, true],
  ])
  expect(bars([card([span({ began_at: 10, job: 3, user: null })], 60)], 0, 100).map(({ idle }) => idle)).toEqual([false])
})

test('a point is drawn over the stretch it stands for, and where nobody read the card there is a gap', () => {
  expect(curve([0, null, 100], 30, 10).line).toBe('M0.00 10.0L5.00 10.0L10.00 10.0M20.00 0.0L25.00 0.0L30.00 0.0')
  expect(curve([0, 100], 20, 10)).toEqual({
    line: 'M0.00 10.0L5.00 10.0L15.00 0.0L20.00 0.0',
    area: 'M0.00 10L0.00 10.0L5.00 10.0L15.00 0.0L20.00 0.0L20.00 10Z',
  })
})

test('what is to come stands on the rows of its cards: the rest of a run, and a planned start without an end', () => {
  const told = { starts_at: null, gpus: null, ends_at: null, earliest_at: null, latest_at: null, limit_at: null, runs: 3 }
  const jobs = [
    job({ id: 1, state: 'running', gpus: [0], estimate: { ...told, ends_at: 150 } }),
    job({ id: 2, estimate: { ...told, starts_at: 160, gpus: [0] } }),
    job({ id: 3, state: 'running', gpus: [0] }),
    job({ id: 4, state: 'running', gpus: [9], estimate: { ...told, ends_at: 150 } }),
  ]
  expect(coming(jobs, [card([])], 100).map(({ job: { id }, from, to, planned }) => [id, from, to, planned])).toEqual([
    [1, 100, 150, false],
    [2, 160, null, true],
  ])
})

test('the picture begins with the first that is known, and shows a quarter of an hour at least', () => {
  const at = (load: (number | null)[], spans: Span[] = []) =>
    shownFrom({ gpus: [{ ...card(spans), load }], began_at: 0, step_s: 1200 }, 0, 7200)
  expect(at([null, null, 5, null, 6, 7])).toBe(2400)
  expect(at([null, null, 5, null, 6, 7], [span({ began_at: 600 })])).toBe(600)
  expect(at([1, null, 5, null, 6, 7])).toBe(0)
  expect(at([null, null, null, null, null, null], [span({ began_at: 7190 })])).toBe(6300)
  expect(at([null])).toBe(0)
})

test('those that share a card have one label, and who has it alone before or after keeps his own', () => {
  const own = (id: number, over: Partial<Span>): Span => span({ job: id, user: null, name: `vit-b16 · s${id}`, ...over })
  const spans = [
    own(1, { began_at: 0, ended_at: 10 }),
    own(2, { began_at: 20 }),
    own(3, { began_at: 25 }),
    span({ began_at: 30, ended_at: 35, user: 'alice' }),
  ]
  const found = bars([card(spans)], 0, 100)
  expect(found.map(({ lane, lanes }) => [lane, lanes])).toEqual([
    [0, 1],
    [0, 3],
    [1, 3],
    [2, 3],
  ])
  expect(sharings(found)).toEqual([{ row: 0, from: 20, to: 100, jobs: [2, 3], name: 'vit-b16', users: ['alice'], look: 'own' }])
  expect(sharings(bars([card([spans[0] as Span])], 0, 100))).toEqual([])
})
