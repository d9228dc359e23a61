import './theme'
import './i18n'
import './style/tokens.css'
import './style/base.css'
import './style/shell.css'
import './style/gpu.css'
import './style/pages.css'
import './style/health.css'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { Router } from 'wouter'
import { CallError } from './api/call'
import { App } from './app'

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      refetchOnWindowFocus: false, // the stream says what changed
      retry: (count, error) => count < 2 && (!(error instanceof CallError) || error.status === 0 || error.status >= 500),
    },
  },
})

const root = document.getElementById('root')
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <Router base="/ui">
          <App />
        </Router>
      </QueryClientProvider>
    </StrictMode>,
  )
}
