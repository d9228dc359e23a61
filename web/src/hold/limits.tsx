// How many cards a person may hold, over all their homes, and who says so. One's own limits are changed here.
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useBlocked } from '../api/hooks'
import { limitsCommand } from '../model/command'
import { CopyButton } from '../parts/controls'
import { type Limit, useHolding, useLimits } from './data'

export function LimitsPanel() {
  const { t } = useTranslation()
  const { data, error } = useLimits()
  return (
    <section className="panel" aria-label={t('limits.title')}>
      <header>
        <h2>{t('limits.title')}</h2>
        <span className="t2 clip">{t('limits.what')}</span>
      </header>
      {error && <p className="note fail">{error.message}</p>}
      {data?.hold_text && <p className="note fail">{data.hold_text}</p>}
      <table className="list limits">
        <thead>
          <tr>
            <th>{t('limits.which')}</th>
            <th className="num">{t('limits.held')}</th>
            <th className="num">{t('limits.most')}</th>
            <th>{t('limits.by')}</th>
            <th>{t('limits.own')}</th>
          </tr>
        </thead>
        <tbody>
          {data?.limits.map((limit) => (
            <One key={limit.name} limit={limit} own={data.said.own?.[limit.name] ?? null} />
          ))}
        </tbody>
      </table>
    </section>
  )
}

function One({ limit, own }: { limit: Limit; own: number | null }) {
  const { t } = useTranslation()
  const blocked = useBlocked()
  const { limit: change } = useHolding()
  const [typed, setTyped] = useState<string | null>(null)
  const text = (typed ?? (own === null ? '' : String(own))).trim()
  const wanted = text === '' ? null : Number(text)
  const changed = wanted !== own && (wanted === null || Number.isInteger(wanted))
  const full = limit.most !== null && limit.held >= limit.most
  return (
    <tr>
      <td>
        {t(`limits.${limit.name}`)} <code className="t3">{limit.name}</code>
      </td>
      <td className={`num${full ? ' wait strong' : ''}`}>{limit.held}</td>
      <td className="num strong">{limit.most ?? '–'}</td>
      <td className="t2">{limit.by}</td>
      <td>
        <form
          className="row"
          onSubmit={(event) => {
            event.preventDefault()
            if (changed) void change(limit.name, wanted).then(() => setTyped(null))
          }}
        >
          <span className="field" style={{ width: 64 }}>
            <input
              inputMode="numeric"
              aria-label={t('limits.ownof', { name: t(`limits.${limit.name}`) })}
              placeholder="–"
              disabled={blocked !== undefined}
              title={blocked}
              value={typed ?? (own === null ? '' : String(own))}
              onChange={(event) => setTyped(event.target.value)}
            />
          </span>
          <button type="submit" className="btn small" disabled={!changed || blocked !== undefined}>
            {t('tasks.save')}
          </button>
          {changed && <CopyButton text={limitsCommand(limit.name, wanted)} label={t('control.copycommand')} />}
        </form>
      </td>
    </tr>
  )
}
