// Writes beside the built page what it was built from: a hash over the sources and the lock file, which a test compares.
// The same sum is computed by tests/web/test_built_page.py.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const PARTS = ['index.html', 'package-lock.json', 'package.json', 'public', 'src', 'stamp.mjs', 'tsconfig.json', 'vite.config.ts']

function files(path) {
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) => files(join(path, entry.name)))
  } catch {
    return [path] // a file
  }
}

const names = PARTS.flatMap(files).filter((name) => !/\.test\.tsx?$/.test(name))
const sum = createHash('sha256')
for (const name of names.sort()) sum.update(`${name}\n${createHash('sha256').update(readFileSync(name)).digest('hex')}\n`)
writeFileSync('../src/jostle/web/page/built-from', `${sum.digest('hex')}\n`)
