// Every call to the web process: key, language, JSON, and one kind of error.
import i18next from 'i18next'
import { forget, refuse, session } from './session'
import type { Flaw } from './types'

export class CallError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly flaws: Flaw[] = [],
  ) {
    super(detail)
  }
}

export interface Ask {
  method?: string
  query?: Record<string, string | number | boolean | readonly (number | string)[] | undefined | null>
  body?: unknown
  etag?: string | null
  signal?: AbortSignal
}

export interface Answer<T> {
  data: T
  etag: string | null
}

const OF_WORKSPACE = /^\/api\/(commands|scheduler|log|config|settings|v1\/(commands|rules))\b/
let workspace: string | null = null

/** The workspace that calls about files are meant for; none: that of the web process. */
export function setWorkspace(path: string | null): void {
  workspace = path
}

export const address = (path: string, query: Ask['query'] = {}): string =>
  `${path}?${asked(path, { ...query, lang: language() })}`

/** The same call for a command line: with the name of this host, in the language of whoever types it. */
export function wholeAddress(path: string, query: Ask['query'] = {}): string {
  const params = asked(path, query)
  return `${location.origin}${path}${params ? `?${params}` : ''}`
}

function asked(path: string, query: NonNullable<Ask['query']>): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const one of value) params.append(name, String(one))
    else if (value !== undefined && value !== null) params.set(name, String(value))
  }
  if (workspace && OF_WORKSPACE.test(path)) params.set('workspace', workspace)
  return params.toString()
}

export function language(): 'zh' | 'en' {
  return i18next.language?.startsWith('zh') ? 'zh' : 'en'
}

export function headers(): Record<string, string> {
  return session.key ? { 'X-Jostle-Key': session.key } : {}
}

export async function ask<T>(path: string, { method = 'GET', query, body, etag, signal }: Ask = {}): Promise<Answer<T>> {
  const send = headers()
  const key = session.key
  if (body !== undefined) send['Content-Type'] = 'application/json'
  if (etag) send['If-Match'] = etag
  let answer: Response
  try {
    answer = await fetch(address(path, query), {
      method,
      headers: send,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      credentials: 'same-origin',
      cache: 'no-store',
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new CallError(0, 'offline', i18next.t('error.offline'))
  }
  if (!answer.ok) throw await refusal(answer, key)
  return { data: (await answer.json()) as T, etag: answer.headers.get('ETag') }
}

/** `key`: that the call was made with. */
export async function refusal(answer: Response, key: string | null): Promise<CallError> {
  if (answer.status === 401) forget()
  let said: { detail?: unknown; code?: string; flaws?: Flaw[] } = {}
  try {
    said = (await answer.json()) as typeof said
  } catch {
    // an empty body, as every 401 has
  }
  if (answer.status === 403 && said.code === 'key') refuse(key)
  const detail = typeof said.detail === 'string' ? said.detail : i18next.t('error.status', { status: answer.status })
  return new CallError(answer.status, said.code ?? '', detail, said.flaws)
}

export const get = async <T>(path: string, query?: Ask['query'], signal?: AbortSignal): Promise<T> =>
  (await ask<T>(path, { query, signal })).data

export const post = async <T>(path: string, body?: unknown, query?: Ask['query']): Promise<T> =>
  (await ask<T>(path, { method: 'POST', body, query })).data
