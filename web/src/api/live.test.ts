import { afterEach, beforeEach, expect, test, vi } from 'vitest'

let sent: ReadableStreamDefaultController<Uint8Array>
const word = (): void => sent.enqueue(new TextEncoder().encode(': alive\n\n'))
const settle = (): Promise<void> => vi.advanceTimersByTimeAsync(0).then(() => undefined)

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] })
  vi.stubGlobal('sessionStorage', localStorage)
  vi.stubGlobal('navigator', { language: 'en' })
  vi.stubGlobal('document', { documentElement: { dataset: {} } })
  vi.stubGlobal('location', { origin: 'http://localhost', href: 'http://localhost/ui/', port: '29214' })
  localStorage.setItem('jostle.key', 'a key')
  vi.stubGlobal(
    'fetch',
    async () =>
      new Response(
        new ReadableStream({
          start: (one) => {
            sent = one
          },
        }),
      ),
  )
})
afterEach(() => {
  vi.unstubAllGlobals()
  vi.useRealTimers()
})

async function opened() {
  const { Live } = await import('./live')
  const live = new Live()
  live.open()
  await settle()
  word()
  await settle()
  expect(live.picture.link).toBe('live')
  return live
}

test('a stream without a word for three seconds is lost, and one with a word each second is not', async () => {
  const live = await opened()
  for (let second = 0; second < 10; second += 1) {
    await vi.advanceTimersByTimeAsync(1000)
    word()
    await settle()
  }
  expect(live.picture.link).toBe('live')
  await vi.advanceTimersByTimeAsync(2900)
  expect(live.picture.link).toBe('live')
  await vi.advanceTimersByTimeAsync(200)
  expect(live.picture.link).toBe('lost')
  live.close()
})

test('who stood still himself takes nobody for lost before he has listened again', async () => {
  const live = await opened()
  const now = performance.now.bind(performance)
  const late = vi.spyOn(performance, 'now').mockImplementation(() => now() + 60_000) // the timer fires a minute late
  await vi.advanceTimersByTimeAsync(3000)
  expect(live.picture.link).toBe('live')
  await vi.advanceTimersByTimeAsync(3000)
  expect(live.picture.link).toBe('lost')
  late.mockRestore()
  live.close()
})
