// Health in one look: what the console stands on, each thing fine or not, and what to do about it, as `jostle doctor` tells it.
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { get } from './api/call'
import { useLive } from './api/hooks'
import { type Check, corrected } from './model/health'
import { Command } from './parts/controls'
import { Icon } from './parts/icons'

const LOOKS = { ok: ['free', 'tick'], warn: ['wait', 'warn'], bad: ['fail', 'cross'] } as const
const VITAL = ['engine', 'gpus', 'cards', 'disk', 'leases']
const FIRST_MS = 3000 // the page comes before its health
const EVERY_MS = 300_000 // it is a process of its own on the host each time

function useDoctor(enabled = true) {
  const { i18n } = useTranslation()
  return useQuery({
    queryKey: ['doctor', i18n.language],
    queryFn: ({ signal }) => get<{ checks: Check[] }>('/api/v1/doctor', {}, signal),
    enabled,
    refetchInterval: EVERY_MS,
    staleTime: FIRST_MS,
  })
}

/** The worst of it in the header; behind it the five that matter most. */
export function Health() {
  const { t } = useTranslation()
  const { link, engine, hold, cards } = useLive('link', 'engine', 'hold', 'cards')
  const [ready, setReady] = useState(false)
  const [open, setOpen] = useState(false)
  const { data, error, refetch } = useDoctor(ready)
  useEffect(() => {
    const timer = setTimeout(() => setReady(true), FIRST_MS)
    return () => clearTimeout(timer)
  }, [])
  const stands = `${engine}|${hold}|${cards?.error ?? ''}|${cards?.gpus.map((card) => card.state).join()}`
  // biome-ignore lint/correctness/useExhaustiveDependencies: whenever engine, driver or a card has changed, it is asked anew
  useEffect(() => {
    if (ready && link === 'live') void refetch()
  }, [ready, link, stands])
  if (!data && !error) return null
  const wrong = { engine: engine === false ? t('link.engine') : '', gpus: cards?.error ?? '' }
  const checks = corrected(data?.checks ?? [], wrong)
  const vital = checks.filter((check) => VITAL.includes(check.name))
  const bad = checks.filter((check) => check.verdict === 'bad').length
  const warn = checks.filter((check) => check.verdict === 'warn').length
  const worst = error || bad ? 'bad' : warn ? 'warn' : 'ok'
  const [tone, icon] = LOOKS[worst]
  const rest = checks.filter((check) => !VITAL.includes(check.name) && check.verdict !== 'ok')
  return (
    <span className="health">
      <button
        type="button"
        className={`pill ${tone} ${worst}`}
        aria-expanded={open}
        aria-label={t('health.label', { verdict: t(`health.${worst}`, { count: bad || warn }) })}
        onClick={() => setOpen(!open)}
        onKeyDown={(event) => event.key === 'Escape' && setOpen(false)}
      >
        <Icon name={icon} size={10} />
        <span>{t(`health.${worst}`, { count: bad || warn })}</span>
      </button>
      {open && (
        <section className="host" aria-label={t('settings.health')}>
          {error && <p className="fail">{error.message}</p>}
          <Rows checks={[...vital, ...rest]} />
          <Command text="jostle doctor" />
        </section>
      )}
    </span>
  )
}

function Rows({ checks }: { checks: Check[] }) {
  const { t } = useTranslation()
  return (
    <ul className="checks">
      {checks.map((check) => {
        const [tone, icon] = LOOKS[check.verdict]
        return (
          <li key={check.name}>
            <span className={`pill ${tone}`}>
              <Icon name={icon} size={10} />
              {t(`settings.verdict.${check.verdict}`)}
            </span>
            <b>{t(`health.name.${check.name}`, { defaultValue: check.name })}</b>
            <span className="t2">
              {check.found}
              {check.advice && <strong className={tone}>{check.advice}</strong>}
            </span>
          </li>
        )
      })}
    </ul>
  )
}

/** All of it, on the page of settings. */
export function HealthPanel() {
  const { t } = useTranslation()
  const { data, error, isPending } = useDoctor()
  return (
    <section className="panel">
      <header>
        <h2>{t('settings.health')}</h2>
        <span className="grow" />
        <Command text="jostle doctor" />
      </header>
      {error && <p className="note fail">{error.message}</p>}
      {isPending && <p className="note">{t('new.asking')}</p>}
      <Rows checks={data?.checks ?? []} />
    </section>
  )
}
