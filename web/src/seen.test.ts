import { beforeEach, expect, test } from 'vitest'
import { isUnseen } from './model/jobs'
import { job } from './model/samples'
import { lookedAt, markJobs, markSeen } from './seen'

const broken = (id: number, agoMs: number) => job({ id, state: 'failed', ended_at: (Date.now() - agoMs) / 1000 })
const HOUR = 3600_000

beforeEach(() => localStorage.clear())

test('who has never looked is told no time, and is shown the failures of the last day', () => {
  expect(lookedAt().first).toBe(true)
  expect([broken(1, HOUR), broken(2, 25 * HOUR)].map((one) => isUnseen(one, lookedAt()))).toEqual([true, false])
  const before = Date.now()
  markSeen()
  expect(lookedAt().first).toBe(false)
  expect(lookedAt().at).toBeGreaterThanOrEqual(before)
  expect(isUnseen(broken(1, HOUR), lookedAt())).toBe(false)
})

test('a failure that was looked at is seen, the others are not', () => {
  markJobs([2])
  markJobs([3])
  expect([1, 2, 3].map((id) => isUnseen(broken(id, HOUR), lookedAt()))).toEqual([true, false, false])
  expect(lookedAt()).toBe(lookedAt()) // the same until something changes, else the page draws without end
})
