// The one stream of this tab, and what it says at this moment. Lost is said at once; it comes back by itself, after growing
// pauses, from the event it has seen last. A hidden tab closes it and catches up when it is looked at again.
import { address, headers, refusal } from './call'
import { session } from './session'
import { Cutter, type Sent } from './sse'
import type { Cards, StoreEvent } from './types'

export interface LogPiece {
  job: number
  run: number
  from: number
  to: number
  text: string
  over: boolean
}

export interface Picture {
  link: 'joining' | 'live' | 'lost'
  engine: boolean | null
  hold: string
  version: string
  cards: Cards | null
  heardAt: number | null // when the web process said something last
  cardsAt: number | null
  readAt: number | null // when a card could be read last
  engineLostAt: number | null
  retryAt: number | null
}

export interface Watch {
  job: number
  run: number
  from: number
}

type Heard = { event?: (event: StoreEvent) => void; behind?: () => void; log?: (piece: LogPiece) => void }

const SILENT_MS = 3000 // a line comes each second
const LATE_MS = 500 // a timer that is later than this says that the page stood still, and not the web process
const JOINING_MS = 25_000 // the first word may have to wait for an engine that does not answer
const PAUSES_MS = [500, 1000, 2000, 4000, 8000]

export class Live {
  picture: Picture = {
    link: 'joining',
    engine: null,
    hold: '',
    version: '',
    cards: null,
    heardAt: null,
    cardsAt: null,
    readAt: null,
    engineLostAt: null,
    retryAt: null,
  }
  private readonly lookers = new Set<() => void>()
  private readonly hearers = new Set<Heard>()
  private seq: string | null = null
  private interval = 1
  private watch: Watch | null = null
  private stop: AbortController | null = null
  private failures = 0
  private timer: ReturnType<typeof setTimeout> | undefined
  private silence: ReturnType<typeof setTimeout> | undefined

  subscribe = (looker: () => void): (() => void) => {
    this.lookers.add(looker)
    return () => this.lookers.delete(looker)
  }

  hear(heard: Heard): () => void {
    this.hearers.add(heard)
    return () => this.hearers.delete(heard)
  }

  /** Opens the stream; to be called again changes nothing while it is open. */
  open(): void {
    if (!this.stop && session.key) this.join()
  }

  close(): void {
    clearTimeout(this.timer)
    clearTimeout(this.silence)
    this.stop?.abort()
    this.stop = null
  }

  setInterval(seconds: number): void {
    if (seconds === this.interval) return
    this.interval = seconds
    this.rejoin()
  }

  follow(watch: Watch | null): void {
    if (!watch && !this.watch) return
    this.watch = watch
    this.rejoin()
  }

  rejoin(): void {
    this.close()
    this.open()
  }

  private change(next: Partial<Picture>): void {
    this.picture = { ...this.picture, ...next }
    for (const looker of this.lookers) looker()
  }

  private join(): void {
    clearTimeout(this.timer)
    const stop = new AbortController()
    this.stop = stop
    this.read(stop).catch(() => this.lost(stop))
  }

  private async read(stop: AbortController): Promise<void> {
    const query = { after: this.seq, gpus: this.interval, log: this.watch?.job, run: this.watch?.run, from: this.watch?.from }
    const send = { ...headers(), Accept: 'text/event-stream' }
    const key = session.key
    this.awaitWord(stop, JOINING_MS)
    const answer = await fetch(address('/api/v1/stream', query), { headers: send, signal: stop.signal, cache: 'no-store' })
    if (!answer.ok || !answer.body) throw await refusal(answer, key)
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    const cutter = new Cutter()
    for (let within = JOINING_MS; ; within = SILENT_MS) {
      this.awaitWord(stop, within)
      const { value, done } = await reader.read()
      if (done) throw new Error('the stream ended')
      this.failures = 0
      const sent = cutter.push(value)
      this.change({ link: 'live', heardAt: Date.now(), retryAt: null })
      for (const one of sent) this.take(one)
    }
  }

  private awaitWord(stop: AbortController, within = SILENT_MS): void {
    clearTimeout(this.silence)
    const due = performance.now() + within
    this.silence = setTimeout(() => {
      if (performance.now() > due + LATE_MS) return this.awaitWord(stop)
      stop.abort()
      this.lost(stop)
    }, within)
  }

  private lost(stop: AbortController): void {
    if (this.stop !== stop) return // closed or opened anew meanwhile
    this.stop = null
    clearTimeout(this.silence)
    const pause = PAUSES_MS[Math.min(this.failures, PAUSES_MS.length - 1)] ?? 8000
    this.failures += 1
    this.change({ link: 'lost', retryAt: Date.now() + pause })
    if (session.key) this.timer = setTimeout(() => this.open(), pause)
  }

  private take({ event, data, id }: Sent): void {
    const said = JSON.parse(data)
    if (id) this.seq = id
    if (event === 'hello') {
      if (this.seq === null) this.seq = String(said.seq)
      this.change({ version: said.version })
    } else if (event === 'engine') this.engine(said)
    else if (event === 'gpus') this.cards(said as Cards)
    else if (event === 'event') for (const heard of this.hearers) heard.event?.(said as StoreEvent)
    else if (event === 'behind') for (const heard of this.hearers) heard.behind?.()
    else if (event === 'log') this.log(said as LogPiece)
  }

  private engine(said: { running: boolean | null; hold?: string; hold_text?: string }): void {
    const before = this.picture
    const since = said.running ? null : (before.engineLostAt ?? Date.now())
    this.change({ engine: said.running === true, hold: said.hold_text || said.hold || '', engineLostAt: since })
    if (before.engine === null || (before.engine === this.picture.engine && before.hold === this.picture.hold)) return
    for (const heard of this.hearers) heard.behind?.() // the reasons of all that waits are others now
  }

  private cards(cards: Cards): void {
    const last = this.picture.cards?.gpus
    if (!cards.engine && last?.length) return // nobody reads them: the last picture stays, and is shown as stale
    const at = Date.now()
    const read = cards.gpus.some((card) => card.state === 'ok')
    const before = cards.read_at === null ? this.picture.readAt : cards.read_at * 1000
    this.change({ cards, cardsAt: at, readAt: read ? at : before })
  }

  private log(piece: LogPiece): void {
    if (this.watch && this.watch.job === piece.job) this.watch = { ...this.watch, from: piece.to }
    for (const heard of this.hearers) heard.log?.(piece)
  }
}

export const live = new Live()
