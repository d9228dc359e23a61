import { expect, test } from 'vitest'
import { Cutter } from './sse'

const STREAM = 'event: hello\ndata: {"seq": 1}\n\n: alive\n\nid: 7\nevent: event\ndata: a\ndata: b\n\n'

test('events are the same however the stream is cut into pieces', () => {
  for (let size = 1; size <= STREAM.length; size += 1) {
    const cutter = new Cutter()
    const sent = []
    for (let at = 0; at < STREAM.length; at += size) sent.push(...cutter.push(STREAM.slice(at, at + size)))
    expect(sent).toEqual([
      { event: 'hello', data: '{"seq": 1}', id: null },
      { event: 'event', data: 'a\nb', id: '7' },
    ])
  }
})

test('lines that end in both marks are read alike, and half an event is kept back', () => {
  const cutter = new Cutter()
  expect(cutter.push('data: x\r\n')).toEqual([])
  expect(cutter.push('\r\n')).toEqual([{ event: 'message', data: 'x', id: null }])
})
