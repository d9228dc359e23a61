import { describe, expect, test } from 'vitest'
import { plain, shown, spans } from './ansi'
import { addBody, addCommand, competeCommand, EMPTY_JOB, jobCommand, quoted } from './command'
import { clock, model, size, span } from './format'
import { corrected } from './health'
import { shownIds, typedIds } from './ids'
import { commonName, groupName, lookOf, matches, sections, since } from './jobs'
import { LogText, MOST_LINES, traceback } from './logtext'
import { foreign, forYou, hueOf, isCardFound, isFound, isFree, ownNames, people, shares } from './people'
import { moved, nudged, removed, sendable } from './queues'
import { allowed, control, grouped, keysOf, nested, valueAt } from './rules'
import { card, holder, job, NOTHING_SEEN } from './samples'

test('a scheduler as a command names its workspace: it works in any directory', () => {
  expect(competeCommand('single', 0, '/data/my work')).toBe("jostle compete '/data/my work'")
  expect(competeCommand('multi', 2, '/data/w')).toBe('jostle compete --mode multi --config-index 2 /data/w')
})

describe('cards', () => {
  test('a card that cannot be read is never free, whatever was read last', () => {
    expect(isFree(card({}), new Set())).toBe(true)
    for (const state of ['lost', 'unreadable', 'unknown', 'starting', 'mig']) {
      expect(isFree(card({ state }), new Set())).toBe(false)
      expect(forYou(card({ state }))).toBe(false)
    }
  })
  test('a card is not free while a run of ours holds it, is set aside, or has memory that no process shows', () => {
    expect(isFree(card({ runs: ['3.1'] }), new Set())).toBe(false)
    expect(isFree(card({ excluded: true }), new Set())).toBe(false)
    expect(isFree(card({ quarantine: 'faulty' }), new Set())).toBe(false)
    expect(isFree(card({ used_mib: 9000 }), new Set())).toBe(false)
  })
  test('memory that no process shows is told of a card that can be read, and of no other', () => {
    const names = (state: string) => people([card({ state, used_mib: 9000 })]).map((person) => person.name)
    expect(names('ok')).toEqual(['you', ''])
    expect(names('unknown')).toEqual(['you'])
  })
  test('a card is split between its holders, the larger first', () => {
    const both = card({
      used_mib: 21_000,
      holders: [holder({ pid: 2, user: 'dave', used_mib: 1000 }), holder({ used_mib: 20_000 })],
    })
    expect(shares(both, new Set())).toEqual([
      { person: 'alice', mib: 20_000 },
      { person: 'dave', mib: 1000 },
    ])
  })
  test('own runs tell who one is, so that own processes outside of jostle are one’s own, too', () => {
    const cards = [
      card({ runs: ['1.1'], holders: [holder({ user: 'me', run: '1.1' })] }),
      card({ index: 1, holders: [holder({ user: 'me' })] }),
    ]
    expect(ownNames(cards)).toEqual(new Set(['me']))
    expect(people(cards).map((person) => [person.name, person.cards])).toEqual([['you', [0, 1]]])
  })
  test('a person keeps their colour when others come and go', () => {
    const first = hueOf('alice')
    hueOf('bob')
    expect(hueOf('alice')).toBe(first)
    expect(hueOf('bob')).not.toBe(first)
  })
})

test('a card and what is on it are found by its number and by who is there', () => {
  const bobs = card({ index: 3, holders: [holder({ user: 'bob', pid: 77 })] })
  expect(isCardFound(bobs, new Set(), 'bo')).toBe(true)
  expect(isCardFound(bobs, new Set(), 'gpu 3')).toBe(true)
  expect(isCardFound(bobs, new Set(), 'alice')).toBe(false)
  expect(isCardFound(bobs, new Set(), '')).toBe(false)
  expect(foreign([bobs]).filter((one) => isFound(one, 'BOB'))).toHaveLength(1)
  expect(foreign([bobs]).filter((one) => isFound(one, 'alice'))).toEqual([])
  expect(matches(job({ state: 'running', gpus: [3] }), 'gpu 3')).toBe(true)
  expect(matches(job({ state: 'running', gpus: [2] }), 'gpu 3')).toBe(false)
})

describe('jobs', () => {
  test('failures after the last look are unseen, running ones by their start, waiting ones folded by reason', () => {
    const behind = { code: 'behind', params: { job: 1 }, text: 'x' }
    const found = sections(
      [
        job({ id: 1, state: 'failed', ended_at: 50 }),
        job({ id: 2, state: 'failed', ended_at: 200 }),
        job({ id: 3, state: 'running', started_at: 9 }),
        job({ id: 4, state: 'running', started_at: 5 }),
        job({ id: 5, queue: 'q', reason: { ...behind, text: 'behind 1' } }),
        job({ id: 6, queue: 'q', reason: { ...behind, text: 'behind 2' } }),
        job({ id: 7, queue: 'r', reason: behind }),
        job({ id: 8, state: 'succeeded', ended_at: 150 }),
      ],
      { ...NOTHING_SEEN, at: 100_000 },
      100_000,
    )
    expect(found.unseen.map((one) => one.id)).toEqual([2])
    expect(found.running.flatMap((group) => group.jobs.map((one) => one.id))).toEqual([4, 3])
    expect(found.waiting.map((group) => group.jobs.map((one) => one.id))).toEqual([[5, 6], [7]])
    expect(found.ended).toEqual({ succeeded: 1, failed: 1, cancelled: 0, skipped: 0 })
    expect(found.waitingCount).toBe(3)
  })
  test('without an engine all waits fold into the one reason', () => {
    const none = { code: 'no_engine', params: {}, text: 'no engine' }
    const found = sections(
      [job({ id: 1, batch: 1, reason: none }), job({ id: 2, batch: 2, queue: 'q', reason: none })],
      NOTHING_SEEN,
      0,
    )
    expect(found.waiting).toHaveLength(1)
  })
  test('what ended since the last look is counted', () => {
    expect(
      since(
        [job({ state: 'succeeded', ended_at: 5 }), job({ state: 'failed', ended_at: 9 }), job({ state: 'failed', ended_at: 1 })],
        2000,
      ),
    ).toEqual({ done: 1, failed: 1 })
  })
  test('names of a sweep are told by what they share', () => {
    expect(commonName(['vit-b16 lr=1e-4 s0', 'vit-b16 lr=1e-4 s1'])).toBe('vit-b16 lr=1e-4')
    expect(commonName(['net · lr=1e-1 · s0', 'net · lr=1e-2 · s0'])).toBe('net')
    expect(commonName(['a', 'b'])).toBe('a')
    expect(commonName(['one'])).toBe('one')
  })
  test('jobs of one row are called by what their names share, else by each name, and not by the first alone', () => {
    const called = (...names: string[]) => groupName(names.map((name) => ({ name })))
    expect(called('net · s0', 'net · s1')).toBe('net')
    expect(called('vit-l', 'notebook')).toBe('vit-l, notebook')
    expect(called('vit-l', 'vit-l', 'notebook')).toBe('vit-l, notebook')
    expect(called('a', 'b', 'c')).toBeNull()
  })
  test('jobs of several batches that wait for the same are one row', () => {
    const limit = (text: string) => ({ code: 'limit', params: {}, text })
    const found = sections(
      [
        job({ id: 1, batch: 1, reason: limit('room for 2') }),
        job({ id: 2, batch: 2, reason: limit('room for 2') }),
        job({ id: 3, batch: 2, reason: limit('room for 1') }),
      ],
      NOTHING_SEEN,
      0,
    )
    expect(found.waiting.map((group) => group.jobs.map((one) => one.id))).toEqual([[1, 2], [3]])
  })
  test('a held job and one that backs off look so', () => {
    expect(lookOf(job({ intent: 'hold' }))).toBe('held')
    expect(lookOf(job({ reason: { code: 'backoff', params: {} } }))).toBe('backoff')
    expect(lookOf(job({ state: 'running', intent: 'hold' }))).toBe('running')
  })
  test('a number finds by id, words find in name and command', () => {
    expect(matches(job({ id: 104 }), '#10')).toBe(true)
    expect(matches(job({ id: 4 }), '10')).toBe(false)
    expect(matches(job({ commands: ['python Train.py'] }), 'train')).toBe(true)
  })
})

describe('output', () => {
  test('a progress bar is one line, however it arrives', () => {
    for (const pieces of [['10%\r20%\r30%\nend\n'], ['10%', '\r20%', '\r', '30%\n', 'end\n'], ['10%\r', '20%\r', '30%\nend\n']]) {
      const text = new LogText()
      for (const piece of pieces) text.append(piece)
      expect(text.shown).toEqual([
        { text: '30%', folded: 2 },
        { text: 'end', folded: 0 },
      ])
    }
  })
  test('lines that end in both marks keep their text', () => {
    const text = new LogText()
    text.append('one\r\ntwo\r\n')
    expect(text.shown.map((line) => line.text)).toEqual(['one', 'two'])
  })
  test('the oldest lines go first, and it is known how many went', () => {
    const text = new LogText()
    text.append('x\n'.repeat(MOST_LINES + 50))
    expect(text.lines.length).toBeLessThanOrEqual(MOST_LINES)
    expect(text.dropped + text.shown.length).toBe(MOST_LINES + 50)
  })
  test('the first traceback is found, with the line that names the error', () => {
    const lines = [
      'epoch 1',
      'Traceback (most recent call last):',
      '  File "a.py", line 1',
      '    f()',
      'ValueError: no',
      'later',
    ].map((text) => ({ text }))
    expect(traceback(lines)).toEqual({ from: 1, to: 4 })
    expect(traceback([{ text: 'fine' }])).toBeNull()
  })
  test('colours become class names, everything else of a terminal is left out', () => {
    expect(spans('a\x1b[1;31mred\x1b[0m b\x1b[2K\x1b]0;title\x07c')).toEqual([
      { text: 'a', look: '' },
      { text: 'red', look: 'ansi1 bold' },
      { text: ' b', look: '' },
      { text: 'c', look: '' },
    ])
    expect(spans('\x1b[38;5;196mx\x1b[48;2;1;2;3my')).toEqual([
      { text: 'x', look: '' },
      { text: 'y', look: '' },
    ])
  })
  test('marks that turn the text around are shown by their number', () => {
    expect(plain('user\u202etxt.exe')).toBe('user‹U+202E›txt.exe')
  })
  test('of a command nothing is left out, and what is too long says how much more there is', () => {
    expect(shown('a\x1b[31m\u202eb\n', 100)).toEqual({ text: 'a‹U+001B›[31m‹U+202E›b\n', more: 0 })
    expect(shown('m'.repeat(1000), 10)).toEqual({ text: 'm'.repeat(10), more: 990 })
  })
})

describe('commands', () => {
  test('ids are ranges where they follow each other', () => {
    expect(shownIds([110, 108, 103, 109])).toBe('#103 #108–#110')
    expect(typedIds([1, 2, 3, 9])).toBe('1-3 9')
    expect(jobCommand('cancel', [5, 6])).toBe('jostle cancel 5 6')
  })
  test('a word with anything for a shell in it is quoted', () => {
    expect(quoted("it's; rm -rf $HOME")).toBe("'it'\\''s; rm -rf $HOME'")
    expect(quoted('8GiB')).toBe('8GiB')
  })
  test('the form, the request and the command say the same', () => {
    const form = {
      ...EMPTY_JOB,
      command: 'python a.py',
      gpus: 2,
      memory: '8',
      share: true,
      queue: 'q',
      retry: 2,
      workdir: '/w d',
    }
    expect(addCommand(form)).toBe("jostle add -g 2 -m 8GiB --share -q q --retry 2 --workdir '/w d' -- 'python a.py'")
    expect(addBody(form)).toEqual({
      run: 'python a.py',
      gpus: 2,
      memory: '8GiB',
      share: true,
      queue: 'q',
      retry: 2,
      workdir: '/w d',
    })
  })
  test('without a card there is neither memory nor sharing', () => {
    expect(addBody({ ...EMPTY_JOB, command: 'x', gpus: 0, memory: '8', share: true })).toEqual({ run: 'x', gpus: 0 })
  })
})

describe('figures', () => {
  test('durations, sizes, names', () => {
    expect([3, 840, 3840, 266_400].map(span)).toEqual(['3s', '14m', '1h04m', '3d02h'])
    expect([5, 148_000, 2.5e6, 3e9].map(size)).toEqual(['5 B', '148 kB', '2.5 MB', '3.0 GB'])
    expect(model('NVIDIA GeForce RTX 4090')).toBe('RTX 4090')
  })
  test('a time of another day carries its date', () => {
    const noon = new Date(2031, 4, 2, 12, 5).getTime()
    expect(clock(noon, noon)).toBe('12:05')
    expect(clock(noon, noon + 36 * 3600_000)).toBe('05-02 12:05')
  })
})

describe('queues of a command file', () => {
  const process = (command: string, id: number) => ({ id, commands: [command], gpu_count: 1, memory: 1 })
  const queues = [
    { id: 1, processes: [process('a', 1), process('b', 2)] },
    { id: 2, processes: [process('c', 1)] },
  ]
  const names = (all: typeof queues) => all.map((queue) => queue.processes.map((one) => `${one.id}${one.commands[0]}`).join(' '))
  test('a moved process takes its place, and all are numbered anew', () => {
    expect(names(moved(queues, { queue: 0, process: 0 }, { queue: 1, process: 1 }))).toEqual(['1b', '1c 2a'])
  })
  test('with the keyboard it goes over the edge of its queue', () => {
    expect(names(nudged(queues, { queue: 0, process: 1 }, 1))).toEqual(['1a', '1b 2c'])
    expect(names(nudged(queues, { queue: 0, process: 0 }, -1))).toEqual(['1a 2b', '1c'])
  })
  test('a queue without processes goes, and empty commands are not sent', () => {
    expect(names(removed(queues, { queue: 1, process: 0 }))).toEqual(['1a 2b'])
    expect(names(sendable([{ id: 1, processes: [process(' ', 1), process('d', 2)] }]))).toEqual(['1d'])
  })
})

describe('rules', () => {
  test('min(max_gpu, max(min_gpu, available − gpu_left))', () => {
    expect(allowed(6, { left: 1, least: 2, most: 4 })).toBe(4)
    expect(allowed(2, { left: 3, least: 2, most: 4 })).toBe(2)
    expect(allowed(8, { left: 0, least: 2, most: 1 })).toBe(1)
  })
  test('dotted names are nested values', () => {
    expect(valueAt({ retry_config: { backoff_duration: 600 } }, 'retry_config.backoff_duration')).toBe(600)
    expect(nested({ gpu_left: 1, 'retry_config.backoff_duration': 5 })).toEqual({
      gpu_left: 1,
      retry_config: { backoff_duration: 5 },
    })
  })
  test('no key of the file is left out of the form', () => {
    const keys = keysOf({ gpu_left: 1, compete_gpus: [0], new_one: null, retry_config: { max_retries: 3 } })
    expect(grouped(keys)).toEqual([
      ['many', ['gpu_left']],
      ['which', ['compete_gpus']],
      ['failure', ['retry_config.max_retries']],
      ['other', ['new_one']],
    ])
  })
  test('a key without a value has its control all the same', () => {
    expect(control('max_gpu', null)).toBe('number')
    expect(control('memory_save_mode', true)).toBe('switch')
    expect(control('compete_gpus', [0])).toBe('list')
  })
  test('words to choose from are those that the server knows', () => {
    const fields = [
      { name: 'strangers', words: ['avoid', 'share', 'one of tomorrow'] },
      { name: 'choice', words: ['best-fit'] },
    ]
    expect(control('strangers', 'avoid', fields)).toEqual(['avoid', 'share', 'one of tomorrow'])
    expect(control('gpu_choice', null, fields)).toEqual(['', 'best-fit'])
    expect(control('strangers', 'avoid')).toBe('text') // until they are known
  })
})

test('what the stream knows to be bad is bad at once, whatever the doctor said before', () => {
  const check = { name: 'engine', verdict: 'ok' as const, found: 'runs', advice: '' }
  expect(corrected([check], { engine: 'No engine', gpus: '' })).toEqual([{ ...check, verdict: 'bad', found: 'No engine' }])
  expect(corrected([check], { engine: '' })).toEqual([check])
  const told = { ...check, verdict: 'warn' as const, found: 'none runs' }
  expect(corrected([told], { engine: 'No engine' })[0]).toEqual({ ...told, verdict: 'bad' })
})
