// The health of what the console stands on, its own settings, and the way out.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { failed } from '../api/acts'
import { ask, get, post, wholeAddress } from '../api/call'
import { useRights, useStatus } from '../api/hooks'
import { live } from '../api/live'
import { forget } from '../api/session'
import type { Setting } from '../api/types'
import { HealthPanel } from '../health'
import { callCommand } from '../model/command'
import { NotifyPanel } from '../notify'
import { Command, Switch } from '../parts/controls'
import { say } from '../parts/toast'
import { OfWorkspace } from '../parts/workspace'

export default function SettingsPage() {
  const { t } = useTranslation()
  return (
    <div className="settings">
      <h1 className="sr">{t('page.settings')}</h1>
      <HealthPanel />
      <NotifyPanel />
      <OfWorkspace>{() => <ConsoleSettings />}</OfWorkspace>
      <About />
    </div>
  )
}

// What would open the console to others is said on the command line, never in a browser; where its files lie, nowhere.
const FIXED: Record<string, string> = {
  'bind-address': 'settings.fixed',
  'allow-lan': 'settings.fixed',
  'target-yaml-path': 'settings.always',
  'log-dir': 'settings.always',
}

interface Saved {
  requires_restart: string[]
  warnings: string[]
}

function ConsoleSettings() {
  const { t, i18n } = useTranslation()
  const client = useQueryClient()
  const { mayWrite } = useRights()
  const [changes, setChanges] = useState<Record<string, unknown>>({})
  const { data, error } = useQuery({
    queryKey: ['settings', i18n.language],
    queryFn: ({ signal }) => get<Record<string, Setting>>('/api/settings', {}, signal),
  })
  const count = Object.keys(changes).length
  const said = 'secret' in changes ? { ...changes, secret: '…' } : changes // a secret is nothing to copy
  const saveCommand = callCommand('PUT', wholeAddress('/api/settings'), said)
  const save = async (): Promise<void> => {
    try {
      const saved = (await ask<Saved>('/api/settings', { method: 'PUT', body: changes })).data
      const later = saved.requires_restart
      say({ text: later.length ? t('settings.restart', { keys: later.join(', ') }) : t('settings.saved'), command: saveCommand })
      for (const warning of saved.warnings) say({ text: warning, bad: true })
      setChanges({})
    } catch (problem) {
      failed(problem)
    }
    await client.invalidateQueries({ queryKey: ['settings'] })
  }
  return (
    <section className="panel">
      <header>
        <h2>{t('settings.console')}</h2>
        <code className="t2">config/control_setting.yaml</code>
      </header>
      {error && <p className="note fail">{error.message}</p>}
      {Object.entries(data ?? {}).map(([key, setting]) => (
        <div key={key} className="setting">
          <div>
            <code>{key}</code> {setting.requires_restart && <span className="pill">{t('settings.needsrestart')}</span>}
            <p>{t(`settings.what.${key}`, { defaultValue: setting.description })}</p>
            {FIXED[key] ? <p>{t(FIXED[key])}</p> : setting.warning && <p className="wait">{t('settings.ignored')}</p>}
          </div>
          <SettingField
            name={key}
            value={changes[key] ?? setting.value}
            disabled={!mayWrite || key in FIXED}
            onChange={(value) => setChanges({ ...changes, [key]: value })}
          />
        </div>
      ))}
      <footer>
        <span className="t2">{t('rules.changes', { count })}</span>
        <span className="grow">{count > 0 && <Command text={saveCommand} />}</span>
        <button type="button" className="btn" disabled={!count} onClick={() => setChanges({})}>
          {t('rules.undo')}
        </button>
        <button type="button" className="btn primary" disabled={!count || !mayWrite} onClick={() => void save()}>
          {t('tasks.save')}
        </button>
      </footer>
    </section>
  )
}

interface SettingFieldProps {
  name: string
  value: unknown
  disabled: boolean
  onChange: (value: unknown) => void
}

function SettingField({ name, value, disabled, onChange }: SettingFieldProps) {
  const { t } = useTranslation()
  if (typeof value === 'boolean') return <Switch label={name} checked={value} disabled={disabled} onChange={onChange} />
  const secret = name === 'secret'
  const read = (text: string): unknown => (name === 'port' && /^\d+$/.test(text) ? Number(text) : text)
  return (
    <span className="field">
      <input
        aria-label={name}
        type={secret ? 'password' : 'text'}
        autoComplete={secret ? 'new-password' : 'off'}
        placeholder={secret ? t('settings.unchanged') : undefined}
        disabled={disabled}
        value={String(value ?? '')}
        onChange={(event) => onChange(read(event.target.value))}
      />
    </span>
  )
}

function About() {
  const { t } = useTranslation()
  const status = useStatus()
  const logout = async (): Promise<void> => {
    live.close()
    try {
      await post('/api/auth/logout')
    } finally {
      forget(true)
    }
  }
  return (
    <section className="panel">
      <header>
        <h2>{t('settings.about')}</h2>
        <span className="grow" />
        <button type="button" className="btn" onClick={() => void logout()}>
          {t('settings.logout')}
        </button>
      </header>
      <dl className="facts about">
        <dt>jostle</dt>
        <dd>{status?.version}</dd>
        {Object.entries(status?.paths ?? {}).map(([name, path]) => (
          <div key={name} style={{ display: 'contents' }}>
            <dt>{name}</dt>
            <dd className="mono">{path ?? '–'}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
