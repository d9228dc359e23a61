import type { CSSProperties } from 'react'
import { useTranslation } from 'react-i18next'
import type { Card } from '../api/types'
import { hueOf, initialsOf, isFree, ownNames, shares } from '../model/people'
import { allowed } from '../model/rules'
import { Pill } from '../parts/pill'
import { Diff } from '../tasks/diff'
import type { Courtesy, RuleEffects, WaitingTask } from './effects'

type Words = (key: string, values?: Record<string, unknown>) => string
type Slot = [look: string, text: string]

/** The formula with today's cards, as the engine counts them: each row is one operation and ends in its number. */
export function Formula({ cards, told, left }: { cards: Card[]; told: Courtesy; left: number }) {
  const { t } = useTranslation()
  const own = ownNames(cards)
  const available = told.available.length
  const spared = told.limits ? Math.max(0, available - left) : told.limit
  const held = told.held.length
  const here = (card: Card): Slot => {
    if (told.held.includes(card.index)) return ['own', `${card.index}`]
    if (isFree(card, own)) return ['open', `${card.index}`]
    const owner = shares(card, own)[0]?.person ?? ''
    return [`theirs hue-${hueOf(owner)}`, `${card.index} ${initialsOf(owner)}`]
  }
  const able = (card: Card): Slot => {
    if (!told.range.includes(card.index)) return ['', '–']
    return told.available.includes(card.index) ? ['in', `${card.index}`] : ['', t('rules.full', { index: card.index })]
  }
  const kept = (card: Card, i: number): Slot => {
    if (!told.limits) return told.left.includes(card.index) ? ['left', t('rules.keep')] : able(card)
    return i < spared ? ['in', ''] : i < available ? ['left', t('rules.keep')] : ['', '']
  }
  const rows: [string, string, (card: Card, i: number) => Slot, number, string][] = [
    [t('rules.row.here'), t('rules.row.herenow'), here, cards.length, ''],
    [t('rules.row.available'), t('rules.row.availablewhy'), able, available, ''],
    [
      t('rules.row.left'),
      t(told.limits ? 'rules.row.leftwhy' : 'rules.row.leftlast', { count: left }),
      kept,
      spared,
      told.limits ? `${available} − ${left}` : t('rules.row.yourlimit'),
    ],
  ]
  if (told.limits) {
    const [least, most] = told.limits
    const within = (_: Card, i: number): Slot => (i < told.limit ? ['in', ''] : ['', ''])
    rows.push([t('rules.row.clamp'), t('rules.row.clampwhy', { least, most }), within, told.limit, t('rules.row.yourlimit')])
  }
  for (const bound of told.bounds) {
    const within = (_: Card, i: number): Slot => (i < bound.most ? ['in', ''] : ['', ''])
    rows.push([
      t(`limits.${bound.name}`),
      t('rules.row.bound', { held: bound.held }),
      within,
      bound.most,
      t('rules.row.yourlimit'),
    ])
  }
  const more = (_: Card, i: number): Slot => (i < held ? ['own', ''] : i < held + told.more ? ['more', '+1'] : ['', ''])
  rows.push([t('rules.row.held'), t('rules.row.heldwhy', { count: held }), more, told.more, t('rules.row.more')])
  return (
    <section className="panel" style={{ flex: 'none' }} aria-label={t('rules.today', { count: cards.length })}>
      <header>
        <h2>{t('rules.today', { count: cards.length })}</h2>
        <span className="grow" />
        {told.limits && <code className="clip">min(max_gpu, max(min_gpu, {t('rules.row.available')} − gpu_left))</code>}
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
              {cards.map((card, i) => {
                const [slot, text] = look(card, i)
                return (
                  <i key={card.uuid} className={slot}>
                    {text}
                  </i>
                )
              })}
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

const NAMED = 6

/** What saving does: your limit before and after, which tasks would start, what it does not touch; and the file's difference. */
export function Effect({ told }: { told: RuleEffects }) {
  const { t } = useTranslation()
  const said = ({ limit, more }: Courtesy): string => t('rules.effect.limit', { count: limit, more })
  return (
    <section className="panel" style={{ flex: 'none' }} aria-label={t('rules.effect.title')}>
      <header>
        <h2>{t('rules.effect.title')}</h2>
      </header>
      <div className="effect">
        {told.before && told.after && (
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
                <td className="t2">{said(told.before)}</td>
                <td className="strong">{said(told.after)}</td>
              </tr>
              {told.waiting.slice(0, NAMED).map((task) => (
                <tr key={task.id}>
                  <td>
                    <Pill look="queued" /> <span className="mono t3">#{task.id}</span> {task.name}
                  </td>
                  <td className="t2">{task.started ? t('new.starts') : t('rules.effect.waits')}</td>
                  <td className={task.starts ? 'free strong' : 't2'}>{become(task, t)}</td>
                </tr>
              ))}
              {told.waiting.length > NAMED && (
                <tr>
                  <td colSpan={3} className="t2">
                    {t('jobfile.more', { count: told.waiting.length - NAMED })}
                  </td>
                </tr>
              )}
              <tr>
                <td>{t('rules.effect.running', { count: told.running })}</td>
                <td className="t2" colSpan={2}>
                  {t('rules.effect.untouched')}
                </td>
              </tr>
            </tbody>
          </table>
        )}
        {told.diff.length > 0 && <Diff lines={told.diff.slice(2)} />}
      </div>
    </section>
  )
}

function become(task: WaitingTask, t: Words): string {
  if (!task.starts) return task.reason?.text ?? t('rules.effect.waits')
  return task.gpus.length ? t('new.startson', { gpus: task.gpus.join(', ') }) : t('new.starts')
}

const LEFTS = [0, 1, 2, 3]

interface WhatIfProps {
  cards: Card[]
  told: Courtesy
  left: number
  most: number | null
  least: number
  disabled: boolean
  onChoose: (left: number, most: number) => void
}

/** Other values, and what today's limit would be; a click fills the form. */
export function WhatIf({ cards, told, left: now, most: nowMost, least, disabled, onChoose }: WhatIfProps) {
  const { t } = useTranslation()
  const available = told.available.length
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
                const result = allowed(available, { left, least, most })
                const style = { '--k': `${8 + (result / Math.max(1, cards.length)) * 30}%` } as CSSProperties
                return (
                  <td key={most}>
                    <button
                      type="button"
                      disabled={disabled}
                      style={style}
                      aria-pressed={left === now && most === nowMost}
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
