// Whether messages get through: each channel, what was sent, what waits and what is wrong; with a test. Where they go is said in the
// owner's settings file, never in a browser.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { failed } from './api/acts'
import { get, post } from './api/call'
import { useRights } from './api/hooks'
import { testCommand } from './model/command'
import { clock } from './model/format'
import { Command } from './parts/controls'
import { Icon } from './parts/icons'
import { say } from './parts/toast'

interface Channel {
  name: string
  kind: string
  host: string
  events: string[]
  waiting: number
  sent: number
  sent_at: number | null
  dropped: number
  flaw: string | null
  failing_since: number | null
  text: string[] // what is wrong with it
}

interface Told {
  running: boolean
  channels: Channel[]
}

const AGAIN_MS = 10_000

export function NotifyPanel() {
  const { t, i18n } = useTranslation()
  const client = useQueryClient()
  const { mayWrite } = useRights()
  const [testing, setTesting] = useState<string | null>(null)
  const { data, error } = useQuery({
    queryKey: ['notify', i18n.language],
    queryFn: ({ signal }) => get<Told>('/api/v1/notify', {}, signal),
    enabled: mayWrite, // who may only look is not told who is told of what
    refetchInterval: AGAIN_MS,
  })
  const test = async (name: string): Promise<void> => {
    setTesting(name)
    try {
      const told = await post<{ channels: { name: string; ok: boolean; error: string | null }[] }>('/api/v1/notify/test', {
        channel: name,
      })
      for (const one of told.channels) {
        const values = { name: one.name, why: one.error ?? '' }
        say({ text: t(one.ok ? 'notify.went' : 'notify.refused', values), bad: !one.ok, command: testCommand(name) })
      }
    } catch (problem) {
      failed(problem)
    }
    setTesting(null)
    await client.invalidateQueries({ queryKey: ['notify'] })
  }
  if (!mayWrite) return null
  const channels = data?.channels ?? []
  return (
    <section className="panel" aria-label={t('notify.title')}>
      <header>
        <h2>{t('notify.title')}</h2>
        <span className="t2 clip">{t('notify.what')}</span>
      </header>
      {error && <p className="note fail">{error.message}</p>}
      {data && channels.length === 0 && (
        <div className="note">
          <p>{t('notify.none')}</p>
          <pre className="sample">{SAMPLE}</pre>
        </div>
      )}
      {channels.map((one) => (
        <div key={one.name} className="setting">
          <div>
            <b>{one.name}</b> <span className="pill">{one.kind}</span> <code className="t2">{one.host}</code>
            <p>{one.events.map((event) => t(`notify.event.${event}`, { defaultValue: event })).join(' · ')}</p>
            <p className={one.text.length ? 'fail' : 't2'}>
              {one.text.length ? (
                <>
                  <Icon name="warn" size={11} /> {one.text.join(' ')}
                </>
              ) : (
                t('notify.stands', {
                  sent: one.sent,
                  waiting: one.waiting,
                  at: one.sent_at === null ? '–' : clock(one.sent_at * 1000),
                })
              )}
            </p>
          </div>
          <button type="button" className="btn" disabled={testing !== null} onClick={() => void test(one.name)}>
            <Icon name="bell" size={12} />
            {testing === one.name ? t('notify.testing') : t('notify.test')}
          </button>
        </div>
      ))}
      {data && channels.length > 0 && (
        <footer>
          <span className={`grow ${data.running ? 't2' : 'wait'}`}>{t(data.running ? 'notify.runs' : 'notify.rests')}</span>
          <Command text="jostle notify" />
        </footer>
      )}
    </section>
  )
}

const SAMPLE = `# config.yaml
notify:
  channels:
    phone: {kind: webhook, url: https://…}
`
