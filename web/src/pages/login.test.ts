import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { afterEach, expect, test, vi } from 'vitest'

afterEach(() => vi.unstubAllGlobals())

test('a rendering, which may be thrown away, leaves the code in the address for the one that counts', async () => {
  const replaceState = vi.fn()
  vi.stubGlobal('sessionStorage', localStorage)
  vi.stubGlobal('location', {
    hash: '#code=abc',
    pathname: '/ui/',
    search: '',
    port: '29214',
    host: 'localhost:29214',
    protocol: 'http:',
  })
  vi.stubGlobal('history', { replaceState })
  vi.stubGlobal('navigator', { language: 'en' })
  vi.stubGlobal('document', { documentElement: { dataset: {} } })
  vi.stubGlobal('window', { matchMedia: () => ({ matches: false, addEventListener: () => undefined }) })
  const { default: Login } = await import('./login')
  expect(renderToString(createElement(Login))).toContain('jostle web --url')
  expect(replaceState).not.toHaveBeenCalled()
})
