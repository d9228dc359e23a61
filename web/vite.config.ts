import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'

// `JOSTLE_WEB=http://localhost:29214 npm run dev` shows the sources against a web process that runs.
const server = process.env.JOSTLE_WEB

export default defineConfig({
  base: '/ui/',
  plugins: [react()],
  html: { cspNonce: '__NONCE__' }, // the web process puts the nonce of each answer in its place
  build: {
    outDir: '../src/jostle/web/page',
    emptyOutDir: true,
    assetsInlineLimit: 0, // a policy without data: addresses
    modulePreload: { polyfill: false },
    target: 'es2022',
  },
  server: server ? { proxy: { '/api': { target: server, headers: { origin: server } } } } : {},
  test: { setupFiles: ['vitest.setup.ts'], include: ['src/**/*.test.ts'] },
})
