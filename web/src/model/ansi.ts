// A line of output as spans with class names: the sixteen colours and bold of ANSI; everything else of a terminal's
// language is left out. Never HTML. Marks that would turn the direction of the text are shown by their number.

export interface Span {
  text: string
  look: string // class names, '' for none
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
const ESCAPE = /\x1b(?:\[([0-9;:?<=>!]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~]?)/g
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is to be shown
const ODD = /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g

export const plain = (line: string): string => visible(line.replace(ESCAPE, ''))

const visible = (text: string): string =>
  text.replace(ODD, (char) => `‹U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}›`)

export interface Shown {
  text: string
  more: number // characters that are not in it
}

const MOST = 1000

/** What is shown of a text that is no output, such as a command: nothing of it is left out unsaid, escape sequences neither. */
export const shown = (text: string, most = MOST): Shown => ({
  text: visible(text.slice(0, most)),
  more: Math.max(0, text.length - most),
})

interface Pen {
  fg: number | null
  bold: boolean
  dim: boolean
}

function draw(pen: Pen, codes: string): Pen {
  let next = { ...pen }
  const numbers = codes.split(/[;:]/).map((code) => Number(code || '0'))
  for (let i = 0; i < numbers.length; i += 1) {
    const n = numbers[i] ?? 0
    if (n === 0) next = { fg: null, bold: false, dim: false }
    else if (n === 1) next.bold = true
    else if (n === 2) next.dim = true
    else if (n === 22) next = { ...next, bold: false, dim: false }
    else if (n >= 30 && n <= 37) next.fg = n - 30
    else if (n >= 90 && n <= 97) next.fg = n - 90
    else if (n === 39) next.fg = null
    else if (n === 38 || n === 48) i += numbers[i + 1] === 5 ? 2 : numbers[i + 1] === 2 ? 4 : 0
  }
  return next
}

const look = (pen: Pen): string =>
  [pen.fg === null ? '' : `ansi${pen.fg}`, pen.bold ? 'bold' : '', pen.dim ? 'dim' : ''].filter(Boolean).join(' ')

export function spans(line: string): Span[] {
  const found: Span[] = []
  let pen: Pen = { fg: null, bold: false, dim: false }
  let from = 0
  for (const match of line.matchAll(ESCAPE)) {
    if (match.index > from) found.push({ text: visible(line.slice(from, match.index)), look: look(pen) })
    if (match[2] === 'm') pen = draw(pen, match[1] ?? '')
    from = match.index + match[0].length
  }
  if (from < line.length) found.push({ text: visible(line.slice(from)), look: look(pen) })
  return found
}
