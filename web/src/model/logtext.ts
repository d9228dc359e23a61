// The output of one run as lines, from pieces as they arrive. A carriage return starts its line over, as on a terminal, so a
// progress bar is one line; how often it was drawn is counted. Bounded: the oldest lines go first.

export interface Line {
  text: string
  folded: number // drawings of this line that were replaced by the last one
}

export const MOST_LINES = 20_000
const MOST_CHARS = 1_000_000 // of one line; the rest is left to the download

export class LogText {
  lines: Line[] = []
  dropped = 0 // lines that are no longer kept
  begun = 0 // lines that were ever begun at the end; those put before do not count
  private open: Line | null = null // the last line, while it has no end
  private returned = false // a carriage return came, and nothing after it yet

  append(piece: string): void {
    if (!piece) return
    const parts = piece.split('\n')
    for (let i = 0; i < parts.length; i += 1) {
      this.write(parts[i] ?? '')
      if (i < parts.length - 1) this.end()
    }
    if (this.lines.length > MOST_LINES) {
      const out = this.lines.length - MOST_LINES
      this.lines = this.lines.slice(out)
      this.dropped += out
    }
  }

  prepend(piece: string): number {
    const earlier = new LogText()
    earlier.append(piece.endsWith('\n') ? piece.slice(0, -1) : piece)
    this.lines = [...earlier.lines, ...this.lines]
    return earlier.lines.length
  }

  private end(): void {
    this.open = null
    this.returned = false
  }

  private write(part: string): void {
    if (!this.open) {
      this.open = { text: '', folded: 0 }
      this.lines.push(this.open)
      this.begun += 1
    }
    const line = this.open
    for (const [i, drawn] of part.split('\r').entries()) {
      if (i > 0) this.returned = true
      if (drawn === '') continue
      if (this.returned) {
        line.folded += line.text === '' ? 0 : 1
        line.text = ''
        this.returned = false
      }
      line.text = (line.text + drawn).slice(0, MOST_CHARS)
    }
  }

  /** The lines without the empty one that is open after a last line end. */
  get shown(): Line[] {
    const last = this.lines.at(-1)
    return last && last === this.open && last.text === '' ? this.lines.slice(0, -1) : this.lines
  }

  /** How many lines came at the end since it was opened: they only grow, whatever is dropped or put before. */
  get arrived(): number {
    return this.begun - (this.open?.text === '' ? 1 : 0)
  }
}

export interface Traceback {
  from: number
  to: number // the line of the error itself
}

const HEAD = 'Traceback (most recent call last):'

/** The first traceback of Python, with the line that names the error. */
export function traceback(lines: readonly { text: string }[]): Traceback | null {
  const from = lines.findIndex((line) => line.text.trimEnd().endsWith(HEAD))
  if (from < 0) return null
  const indent = (lines[from]?.text ?? '').indexOf(HEAD)
  let to = from + 1
  while (to < lines.length && /^\s/.test((lines[to]?.text ?? '').slice(indent))) to += 1
  return { from, to: Math.min(to, lines.length - 1) }
}

export function find(lines: readonly { text: string }[], wanted: string): number[] {
  const text = wanted.toLowerCase()
  if (!text) return []
  const found: number[] = []
  for (const [i, line] of lines.entries()) if (line.text.toLowerCase().includes(text)) found.push(i)
  return found
}
