import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import en from './en'
import zh from './zh'

type Tree = { [key: string]: string | Tree }

function flat(tree: Tree, before = ''): Map<string, string> {
  const found = new Map<string, string>()
  for (const [key, value] of Object.entries(tree)) {
    if (typeof value === 'string') found.set(before + key, value)
    else for (const [inner, text] of flat(value, `${before}${key}.`)) found.set(inner, text)
  }
  return found
}

const bare = (key: string): string => key.replace(/_(one|other)$/, '')
const english = flat(en)
const chinese = flat(zh)

test('both languages have the same keys', () => {
  const keys = (texts: Map<string, string>) => [...new Set([...texts.keys()].map(bare))].sort()
  expect(keys(chinese)).toEqual(keys(english))
})

test('a text in English that counts has both numbers', () => {
  for (const key of english.keys()) {
    if (/_(one|other)$/.test(key))
      expect([...english.keys()]).toEqual(expect.arrayContaining([`${bare(key)}_one`, `${bare(key)}_other`]))
  }
})

test('both languages speak of the same values', () => {
  const holes = (text: string) => new Set(text.match(/\{\{\w+\}\}/g))
  for (const [key, text] of chinese) {
    const other = english.get(key) ?? english.get(`${key}_other`) ?? ''
    expect({ key, holes: [...holes(text)].sort() }).toEqual({ key, holes: [...holes(other)].sort() })
  }
})

function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === 'locale' ? [] : sources(path)
    return /\.tsx?$/.test(entry.name) && !entry.name.includes('.test.') ? [readFileSync(path, 'utf8')] : []
  })
}

test('every text that the page asks for is there', () => {
  const known = new Set([...chinese.keys()].map(bare))
  const all = sources(join(__dirname, '..')).join('\n')
  const asked = [...all.matchAll(/\bt\('([a-zA-Z_.0-9]+)'/g)].map((match) => match[1] ?? '')
  expect(asked.length).toBeGreaterThan(200)
  expect(asked.filter((key) => !known.has(key))).toEqual([])
})

test('everything that `jostle doctor` looks at has a name', () => {
  const source = readFileSync(join(import.meta.dirname, '../../../src/jostle/views/health.py'), 'utf8')
  const checks = [...(source.split('CHECKS: dict')[1] ?? '').matchAll(/"(\w+)": \w+/g)].map((match) => `health.name.${match[1]}`)
  expect(checks.length).toBeGreaterThan(10)
  expect(checks.filter((key) => !chinese.has(key))).toEqual([])
})
