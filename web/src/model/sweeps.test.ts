import { describe, expect, test } from 'vitest'
import { callCommand, moveCommand, setCommand } from './command'
import { meant, reasonsOf, sections } from './jobs'
import { droppedOn, stepped } from './place'
import { job, NOTHING_SEEN } from './samples'
import { progress, segments, sweeps } from './sweeps'

const trial = (id: number, lr: string, seed: string, over = {}) =>
  job({ id, batch: 7, params: { lr, seed, model: 'vit' }, ...over })
const behind = { code: 'limit', text: 'Its batch runs 3 jobs.', params: {} }
const cards = { code: 'gpus', text: '0 of 8 GPUs fit.', params: {} }

describe('a sweep', () => {
  const jobs = [
    trial(1, '1', 'a', { state: 'succeeded', ended_at: 5 }),
    trial(2, '1', 'b', { state: 'running' }),
    trial(3, '2', 'a', { reason: behind }),
    trial(4, '2', 'b', { reason: cards }),
    trial(5, '3', 'b', { reason: behind }),
    job({ id: 9, batch: 7, reason: behind }),
  ]
  test('is the jobs of a batch that have the same parameters, named by those in which they differ', () => {
    const [one, ...rest] = sweeps(jobs).values()
    expect(rest).toEqual([])
    expect(one?.axes).toBe('lr×seed')
    expect(one?.jobs.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5])
  })
  test('waits as one row, whatever each of its jobs waits for, and tells of those that do not wait', () => {
    const [sweep, alone] = sections(jobs, NOTHING_SEEN, 0).waiting
    expect(sweep?.jobs.map(({ id }) => id)).toEqual([3, 4, 5])
    expect(alone?.jobs.map(({ id }) => id)).toEqual([9])
    expect(progress(sweep?.sweep?.jobs ?? [])).toEqual({ done: 1, failed: 0, running: 1, waiting: 3, dropped: 0 })
    expect(reasonsOf(sweep?.jobs ?? []).map(({ reason, count }) => [reason.code, count])).toEqual([
      ['limit', 2],
      ['gpus', 1],
    ])
  })
  test('is told as a whole although only some of its jobs are listed', () => {
    const listed = jobs.filter(({ id }) => id > 2)
    expect(sections(listed, NOTHING_SEEN, 0, jobs).waiting[0]?.sweep?.jobs).toHaveLength(5)
  })
  test('is meant with what runs of it when its row is cancelled, and without what has ended', () => {
    const [sweep] = sections(jobs, NOTHING_SEEN, 0).waiting
    expect(sweep && meant(sweep).map(({ id }) => id)).toEqual([2, 3, 4, 5])
  })
  test('runs as rows of its own while they are few, then as one', () => {
    const running = (count: number) =>
      sections(
        Array.from({ length: count }, (_, i) => trial(i + 1, String(i), 'a', { state: 'running' })),
        NOTHING_SEEN,
        0,
      ).running.length
    expect([running(2), running(3), running(4)]).toEqual([2, 3, 1])
  })
  test('waits with all the rest when there is no engine', () => {
    const gone = { code: 'no_engine', text: '', params: {} }
    const all = jobs.map((one) => ({ ...one, reason: one.state === 'queued' ? gone : null }))
    expect(sections(all, NOTHING_SEEN, 0).waiting.map(({ key }) => key)).toEqual(['no_engine'])
  })
  test('has a segment for each job up to sixty, and above one for each state, as wide as its part', () => {
    expect(segments({ done: 2, failed: 1, running: 0, waiting: 57, dropped: 0 })).toHaveLength(60)
    expect(segments({ done: 2, failed: 1, running: 0, waiting: 58, dropped: 0 })).toEqual([
      { look: 'done', share: 2 },
      { look: 'failed', share: 1 },
      { look: 'waiting', share: 58 },
    ])
  })
})

describe('a place in a queue', () => {
  const jobs = [
    job({ id: 1, queue: 'a', place: 3 }),
    job({ id: 2, queue: 'a', place: 1 }),
    job({ id: 3, queue: 'b', place: 2 }),
    job({ id: 4, queue: 'a', place: 0, state: 'running' }),
    job({ id: 5, queue: 'a', place: 9 }),
  ]
  test('is one step up or down among those that wait in the same queue', () => {
    expect(stepped(jobs, 1, -1)).toEqual({ before: 2 })
    expect(stepped(jobs, 1, 1)).toEqual({ after: 5 })
    expect(stepped(jobs, 2, -1)).toBeNull()
    expect(stepped(jobs, 3, 1)).toBeNull()
    expect(stepped(jobs, 4, 1)).toBeNull()
  })
  test('is taken from the one it is dropped on', () => {
    expect(droppedOn(jobs, 5, 2)).toEqual({ before: 2 })
    expect(droppedOn(jobs, 2, 1)).toEqual({ after: 1 })
    expect(droppedOn(jobs, 2, 3)).toBeNull()
    expect(droppedOn(jobs, 2, 2)).toBeNull()
  })
})

test('acts as commands', () => {
  expect(moveCommand(5, { before: 2 })).toBe('jostle move 5 before 2')
  expect(setCommand(5, { memory: '4GiB', name: "a 'b'" })).toBe("jostle set 5 memory=4GiB 'name=a '\\''b'\\'''")
  expect(callCommand('PUT', 'http://h/api/config?workspace=%2Fa', { max_gpu: 3 })).toBe(
    `curl -X PUT -H "Authorization: Bearer $(jostle web --token)" -H 'Content-Type: application/json' -d '{"max_gpu":3}' 'http://h/api/config?workspace=%2Fa'`,
  )
})
