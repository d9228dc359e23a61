// Every key of the page, once: what `?` lists, and what `useKeys` may be asked for.
import { PAGES } from '../nav'

type Letter = (typeof PAGES)[number][3]

/** Keys that one line tells of, and what they are called on it. `by`: who hears them; the window, or a part of the page itself. */
interface Line {
  name: string
  shown: string
  keys: readonly string[]
  by: 'window' | 'part'
}

export const KEYMAP = [
  { name: 'find', shown: '/', keys: ['/'], by: 'window' },
  { name: 'new', shown: 'N', keys: ['n', 'N'], by: 'window' },
  { name: 'keys', shown: '?', keys: ['?'], by: 'window' },
  {
    name: 'pages',
    shown: `g → ${PAGES.map(([, , , letter]) => letter).join(' · ')}`,
    keys: PAGES.map(([, , , letter]): `g ${Letter}` => `g ${letter}`),
    by: 'window',
  },
  { name: 'move', shown: 'j  k', keys: ['j', 'k'], by: 'window' },
  { name: 'select', shown: 'Space', keys: [' '], by: 'window' },
  { name: 'log', shown: 'Enter', keys: ['Enter'], by: 'window' },
  { name: 'fold', shown: 'o', keys: ['o'], by: 'window' },
  { name: 'reorder', shown: 'Alt ↑ ↓', keys: ['Alt ArrowUp', 'Alt ArrowDown'], by: 'window' },
  { name: 'cancel', shown: 'x', keys: ['x'], by: 'window' },
  { name: 'retry', shown: 'r', keys: ['r'], by: 'window' },
  { name: 'hold', shown: 'h', keys: ['h'], by: 'window' },
  { name: 'copy', shown: 'y', keys: ['y'], by: 'window' },
  { name: 'card', shown: '0 – 9', keys: ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'], by: 'window' },
  { name: 'nextcard', shown: '← →', keys: ['ArrowLeft', 'ArrowRight'], by: 'part' },
  { name: 'follow', shown: 'f', keys: ['f'], by: 'window' },
  { name: 'match', shown: 'n  N', keys: ['n', 'N'], by: 'window' },
  { name: 'end', shown: 'G', keys: ['G'], by: 'window' },
  { name: 'tries', shown: '[  ]', keys: ['[', ']'], by: 'window' },
  { name: 'wrap', shown: 'w', keys: ['w'], by: 'window' },
  { name: 'process', shown: 'Alt ↑ ↓', keys: ['ArrowUp', 'ArrowDown'], by: 'part' },
  { name: 'save', shown: 'Ctrl S', keys: ['s'], by: 'part' },
  { name: 'flaw', shown: 'F8', keys: ['F8'], by: 'part' },
  { name: 'queue', shown: 'Ctrl ↵', keys: ['Enter'], by: 'part' },
  { name: 'escape', shown: 'Esc', keys: ['Escape'], by: 'window' },
] as const satisfies readonly Line[]

/** What the window hears. */
export type Key = Extract<(typeof KEYMAP)[number], { by: 'window' }>['keys'][number]
