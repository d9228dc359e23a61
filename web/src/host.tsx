// The host's name, and behind it what A35 shows of the host: processor, memory, and how often the cards are read.
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLive, useOverview, useStatus } from './api/hooks'
import { live } from './api/live'
import { model } from './model/format'
import { Segmented } from './parts/controls'

const EVERY_MS = 2000
const RATES = ['0.5', '1', '2', '5'] as const

export function HostFacts() {
  const { t } = useTranslation()
  const { cards } = useLive('cards')
  const [open, setOpen] = useState(false)
  const [rate, setRate] = useState<(typeof RATES)[number]>('1')
  const status = useStatus()
  const { data, error } = useOverview(open ? EVERY_MS : false, open)
  const names = [...new Set(cards?.gpus.map((card) => model(card.name)))]
  const kinds = names.map((name) => `${cards?.gpus.filter((card) => model(card.name) === name).length} × ${name}`)
  const host = data?.host
  return (
    <>
      <button type="button" className="hostname" aria-expanded={open} onClick={() => setOpen(!open)}>
        {[status?.host, kinds.join(' + ')].filter(Boolean).join(' · ')}
      </button>
      {open && error && <section className="host fail">{error.message}</section>}
      {open && host && (
        <section className="host" aria-label={host.hostname}>
          <dl className="facts">
            <dt>{t('host.system')}</dt>
            <dd>{host.platform ?? '–'}</dd>
            <dt>CPU</dt>
            <dd>{host.cpu ? t('host.cpu', { count: host.cpu.count, percent: Math.round(host.cpu.percent ?? 0) }) : '–'}</dd>
            <dt>{t('host.memory')}</dt>
            <dd>{host.memory?.total_human ? `${host.memory.used_human} / ${host.memory.total_human}` : '–'}</dd>
            <dt>{t('host.gpumemory')}</dt>
            <dd>{data.total_memory_human ? `${data.used_memory_human} / ${data.total_memory_human}` : '–'}</dd>
            <dt>{t('host.processes')}</dt>
            <dd>{data.total_processes}</dd>
            <dt>{t('host.people')}</dt>
            <dd>{data.active_users?.join(', ') || '–'}</dd>
            <dt>{t('host.rate')}</dt>
            <dd>
              <Segmented
                label={t('host.rate')}
                value={rate}
                choices={RATES.map((value) => ({ value, label: `${value} s` }))}
                onChange={(next) => {
                  setRate(next)
                  live.setInterval(Number(next))
                }}
              />
            </dd>
          </dl>
        </section>
      )}
    </>
  )
}
