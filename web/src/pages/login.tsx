import { type FormEvent, useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { CallError, post } from '../api/call'
import { takeCode } from '../api/code'
import { askOtherTabs, logIn } from '../api/session'
import type { Rights } from '../api/types'
import { LanguageChoice, ThemeChoice } from '../parts/choices'
import { Command } from '../parts/controls'
import { Icon, Mark } from '../parts/icons'

interface Told {
  success: boolean
  message: string
  key?: string
  rights?: Rights
}

const TILES = ['', 'f', 'o hue-violet', '', 'f', 'f', 'o hue-sand', 'o hue-pink']

export default function Login() {
  const { t } = useTranslation()
  const [token, setToken] = useState('')
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(true)

  async function enter(password: string): Promise<void> {
    setBusy(true)
    setError('')
    try {
      const told = await post<Told>('/api/auth/login', { password })
      if (told.success && told.key) logIn({ key: told.key, rights: told.rights ?? 'all' })
      else setError(told.message)
    } catch (problem) {
      setError(problem instanceof CallError ? problem.message : String(problem))
    }
    setBusy(false)
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the page opens
  useEffect(() => {
    const byCode = (): boolean => {
      const code = takeCode() // here and not while rendering: a rendering may be thrown away, and the code with it
      if (code) void enter(code)
      return code !== null
    }
    if (!byCode()) void askOtherTabs().then(() => setBusy(false))
    window.addEventListener('hashchange', byCode) // a link that is pasted into this very tab
    return () => window.removeEventListener('hashchange', byCode)
  }, [])

  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (token.trim()) void enter(token.trim())
  }
  const port = location.port || (location.protocol === 'https:' ? '443' : '80')
  return (
    <div className="login">
      <div className="left" aria-hidden="true">
        <div className="row">
          <Mark size={30} />
          <span className="wordmark">
            jostle <span className="t2">抢卡</span>
          </span>
        </div>
        <div className="say">
          {t('login.say')}
          <div className="tilesrow">
            {TILES.map((look, i) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a fixed picture
              <i key={i} className={look} />
            ))}
          </div>
        </div>
        <code className="t3">{location.host}</code>
      </div>
      <main className="right">
        <div className="corner">
          <LanguageChoice />
          <ThemeChoice />
        </div>
        <form onSubmit={submit}>
          <h1>{t('login.title')}</h1>
          <p className="t2">{t('login.where')}</p>
          <label className="strong" htmlFor="token">
            {t('login.token')}
          </label>
          <span className={`field${error ? ' bad' : ''}`}>
            <Icon name="lock" />
            <input
              id="token"
              type="password"
              autoComplete="current-password"
              value={token}
              aria-invalid={error !== ''}
              aria-describedby="login-error"
              onChange={(event) => setToken(event.target.value)}
            />
          </span>
          <p id="login-error" className="fail" role="alert">
            {error}
          </p>
          <button type="submit" className="btn primary" disabled={busy || !token.trim()}>
            {t('login.enter')}
          </button>
          <hr />
          <h2>{t('login.easier')}</h2>
          <p className="t2">{t('login.link')}</p>
          <Command text="jostle web --url" />
          <p className="t2">{t('login.lasting')}</p>
          <Command text="jostle web --token" />
          <p className="t2">{t('login.tunnel')}</p>
          <Command text={`ssh -L ${port}:localhost:${port} ${t('login.server')}`} />
        </form>
      </main>
    </div>
  )
}
