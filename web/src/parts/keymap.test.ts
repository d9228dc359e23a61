import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import en from '../locale/en'
import zh from '../locale/zh'
import { PAGES } from '../nav'
import { KEYMAP } from './keymap'

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return sources(path)
    return entry.name.endsWith('.tsx') ? [readFileSync(path, 'utf8')] : []
  })
}

const all = sources(join(import.meta.dirname, '..'))

/** The keys that stand in what is given to `useKeys`: those of the shell by `const keys: Keys`. The compiler refuses unlisted ones. */
function heard(): Set<string> {
  const tables = all.flatMap((text) =>
    [...text.matchAll(/(?:useKeys\(|const keys: Keys = )\{(.*?)\}\)?\n/gs)].map((match) => match[1] ?? ''),
  )
  const keys = tables.flatMap((table) => [...table.matchAll(/(?:^|, |\n)\s*(?:'([^']+)'|(\w+))(?:: \(\)|: copy|,)/g)])
  return new Set(keys.map((match) => match[1] ?? match[2] ?? ''))
}

test('what `?` lists is heard, key by key', () => {
  const found = heard()
  const listed = KEYMAP.filter((line) => line.by === 'window' && !['pages', 'card'].includes(line.name)).flatMap((line) => [
    ...line.keys,
  ])
  expect(listed.filter((key) => !found.has(key))).toEqual([])
  const parts = KEYMAP.filter((line) => line.by === 'part').flatMap((line) => [...line.keys])
  const text = all.join('\n')
  expect(parts.filter((key) => !text.includes(`event.key === '${key}'`) && !text.includes(`${key}: `))).toEqual([])
})

test('each page has a letter of its own in the list, and each line its words', () => {
  const pages = KEYMAP.find((line) => line.name === 'pages')
  expect(pages?.keys).toEqual(PAGES.map(([, , , letter]) => `g ${letter}`))
  expect(new Set(pages?.keys).size).toBe(PAGES.length)
  for (const words of [en, zh]) {
    const { title, ...lines } = words.keys
    expect(title).toBeTruthy()
    expect(Object.keys(lines).sort()).toEqual(
      KEYMAP.map((line) => line.name)
        .filter((name) => name !== 'pages')
        .sort(),
    )
    for (const [, name] of PAGES) expect(words.page[name]).toBeTruthy()
  }
})
