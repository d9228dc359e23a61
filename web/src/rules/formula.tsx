import type { CSSProperties } from 'react'
import { useTranslation } from 'react-i18next'
import type { Card } from '../api/types'
import { hueOf, initialsOf, isFree, ownNames, shares } from '../model/people'
import { allowed, type Limits } from '../model/rules'

/** Cards one could hold: those that are yours, and those that nothing speaks against. */
const usable = (card: Card): boolean => card.state === 'ok' && (card.runs.length > 0 || card.refusal === null)

/** The formula with today's cards: each row is one operation and ends in its number. */
export function Formula({ cards, limits }: { cards: Card[]; limits: Limits }) {
  const { t } = useTranslation()
  const own = ownNames(cards)
  const yours = cards.filter((card) => card.runs.length > 0).length
  const available = cards.filter(usable).length
  const most = allowed(available, limits)
  const spared = Math.max(0, available - limits.left)
  const slots = (look: (i: number) => [string, string]) =>
    cards.map((card, i) => {
      const [name, text] = look(i)
      return (
        <i key={card.uuid} className={name}>
          {text}
        </i>
      )
    })
  const rows: [string, string, (i: number) => [string, string], number, string][] = [
    [
      t('rules.row.here'),
      t('rules.row.herenow'),
      (i) => {
        const card = cards[i]
        if (!card) return ['', '']
        if (card.runs.length) return ['own', `${card.index}`]
        if (isFree(card, own)) return ['open', `${card.index}`]
        const owner = shares(card, own)[0]?.person ?? ''
        return [`theirs hue-${hueOf(owner)}`, `${card.index} ${initialsOf(owner)}`]
      },
      cards.length,
      '',
    ],
    [
      t('rules.row.available'),
      t('rules.row.availablewhy'),
      (i) => (cards[i] && usable(cards[i]) ? ['in', String(cards[i].index)] : ['', '']),
      available,
      '',
    ],
    [
      t('rules.row.left'),
      t('rules.row.leftwhy', { count: limits.left }),
      (i) => (i < spared ? ['in', ''] : i < available ? ['left', t('rules.keep')] : ['', '']),
      spared,
      `${available} − ${limits.left}`,
    ],
    [t('rules.row.clamp'), clamped(limits, t), (i) => (i < most ? ['in', ''] : ['', '']), most, t('rules.row.yourlimit')],
    [
      t('rules.row.held'),
      t('rules.row.heldwhy', { count: yours }),
      (i) => (i < Math.min(yours, most) ? ['own', ''] : i < most ? ['more', '+1'] : ['', '']),
      Math.max(0, most - yours),
      t('rules.row.more'),
    ],
  ]
  return (
    <section className="panel" style={{ flex: 'none' }} aria-label={t('rules.today', { count: cards.length })}>
      <header>
        <h2>{t('rules.today', { count: cards.length })}</h2>
        <span className="grow" />
        <code className="clip">min(max_gpu, max(min_gpu, {t('rules.row.available')} − gpu_left))</code>
      </header>
      <div className="formula">
        {rows.map(([name, why, look, result, under]) => (
          <div key={name} className="frow">
            <div>
              <b className="strong">{name}</b>
              <br />
              <span className="t2">{why}</span>
            </div>
            <div className="slots" aria-hidden="true">
              {slots(look)}
            </div>
            <div className="result">
              <b>{result}</b>
              {under}
            </div>
          </div>
        ))}
      </div>
    </section>
  )
}

/** What saving does: your limit before and after, and what it does not touch. */
export function Effect({ cards, before, after }: { cards: Card[]; before: Limits; after: Limits }) {
  const { t } = useTranslation()
  const available = cards.filter(usable).length
  const yours = cards.filter((card) => card.runs.length > 0).length
  const said = (limits: Limits): string => {
    const most = allowed(available, limits)
    return t('rules.effect.limit', { count: most, more: Math.max(0, most - yours) })
  }
  return (
    <section className="panel" style={{ flex: 'none' }} aria-label={t('rules.effect.title')}>
      <header>
        <h2>{t('rules.effect.title')}</h2>
      </header>
      <div className="effect">
        <table className="list">
          <thead>
            <tr>
              <th>{t('rules.effect.what')}</th>
              <th>{t('rules.effect.before')}</th>
              <th>{t('rules.effect.after')}</th>
            </tr>
          </thead>
          <tbody>
            <tr>
              <td>{t('rules.row.yourlimit')}</td>
              <td className="t2">{said(before)}</td>
              <td className="strong">{said(after)}</td>
            </tr>
            <tr>
              <td>{t('rules.effect.running')}</td>
              <td className="t2" colSpan={2}>
                {t('rules.effect.untouched')}
              </td>
            </tr>
          </tbody>
        </table>
      </div>
    </section>
  )
}

function clamped({ least, most }: Limits, t: (key: string, values?: Record<string, unknown>) => string): string {
  if (least !== null && most !== null) return t('rules.row.clampwhy', { least, most })
  if (least !== null) return t('rules.row.clampleast', { least })
  return most === null ? t('rules.row.clampnone') : t('rules.row.clampmost', { most })
}

const LEFTS = [0, 1, 2, 3]

interface WhatIfProps {
  cards: Card[]
  limits: Limits
  disabled: boolean
  onChoose: (left: number, most: number) => void
}

/** Other values, and what today's limit would be; a click fills the form. */
export function WhatIf({ cards, limits, disabled, onChoose }: WhatIfProps) {
  const { t } = useTranslation()
  const available = cards.filter(usable).length
  const mosts = Array.from({ length: Math.min(cards.length, 8) }, (_, i) => i + 1)
  return (
    <section className="panel" style={{ flex: 'none' }} aria-label={t('rules.whatif')}>
      <header>
        <h2>{t('rules.whatif')}</h2>
        <span className="t2 clip">{t('rules.whatifhow')}</span>
      </header>
      <table className="whatif">
        <thead>
          <tr>
            <th scope="col">left \ max</th>
            {mosts.map((most) => (
              <th key={most} scope="col">
                {most}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {LEFTS.map((left) => (
            <tr key={left}>
              <th scope="row">{left}</th>
              {mosts.map((most) => {
                const result = allowed(available, { ...limits, left, most })
                const style = { '--k': `${8 + (result / Math.max(1, cards.length)) * 30}%` } as CSSProperties
                return (
                  <td key={most}>
                    <button
                      type="button"
                      disabled={disabled}
                      style={style}
                      aria-pressed={left === limits.left && most === limits.most}
                      aria-label={`gpu_left ${left}, max_gpu ${most}: ${result}`}
                      onClick={() => onChoose(left, most)}
                    >
                      {result}
                    </button>
                  </td>
                )
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}
