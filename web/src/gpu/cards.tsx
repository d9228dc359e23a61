import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { useHistory, useStatus } from '../api/hooks'
import type { Card, Job } from '../api/types'
import { useDesk } from '../desk'
import { gib, model } from '../model/format'
import { hueOf, initialsOf, isCardFound, isFree, ownNames, type Share, shares } from '../model/people'
import { Measure } from '../parts/meter'
import { useNow } from '../parts/now'
import { Spark } from '../parts/spark'
import { type CardProps, DenseFoot, Holders } from './holders'

const DENSE_FROM = 16
const PLACEHOLDERS = 4

interface GridProps {
  cards: Card[]
  jobs: Job[]
  loaded: boolean
  error: string // why none can be read
}

export function CardGrid({ cards, jobs, loaded, error }: GridProps) {
  const { t } = useTranslation()
  const now = useNow()
  const own = useMemo(() => ownNames(cards), [cards])
  const byId = useMemo(() => new Map(jobs.map((job) => [job.id, job])), [jobs])
  const past = useHistory('10m')
  const byCard = useMemo(() => new Map(past?.gpus.map((one) => [one.uuid, one])), [past])
  if (!loaded) {
    return (
      <div className="cards" aria-busy="true">
        {Array.from({ length: PLACEHOLDERS }, (_, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: nothing to tell them apart
          <div key={i} className="card unknown" />
        ))}
      </div>
    )
  }
  if (cards.length === 0) return <p className="panel note">{t(error ? 'card.noneread' : 'card.nonehere')}</p>
  const dense = cards.length >= DENSE_FROM
  const One = dense ? DenseCell : GpuCard
  return (
    <div className={dense ? 'dense' : ''}>
      {dense && <HostCell cards={cards} own={own} />}
      <ul className={dense ? 'hostrow' : 'cards'} aria-label={t('page.gpu')}>
        {cards.map((card) => (
          <One
            key={card.uuid}
            card={card}
            own={own}
            jobs={byId}
            now={now + (past?.ahead ?? 0) * 1000}
            past={byCard.get(card.uuid)}
          />
        ))}
      </ul>
    </div>
  )
}

/** Whose cards these are: host, models, how many are free. */
function HostCell({ cards, own }: { cards: Card[]; own: Set<string> }) {
  const { t } = useTranslation()
  const status = useStatus()
  const free = cards.filter((card) => isFree(card, own)).length
  const models = [...new Set(cards.map((card) => model(card.name)))]
  return (
    <div className="hostcell">
      <b className="strong clip">{status?.host}</b>
      {models.map((name) => (
        <span key={name} className="t3">
          {t('card.onhost', { count: cards.filter((card) => model(card.name) === name).length, name })}
        </span>
      ))}
      <span className="free strong">{t('shell.free', { count: free })}</span>
    </div>
  )
}

function useLook(card: Card, own: Set<string>) {
  const { asked, open, find } = useDesk()
  const known = card.state === 'ok'
  const free = isFree(card, own)
  const parts = shares(card, own)
  const owner = parts[0]?.person
  const hue = !known && owner === undefined ? 'none' : free ? 'free' : owner === undefined ? 'none' : hueOf(owner)
  return {
    known,
    free,
    parts,
    owner,
    hue,
    chosen: (asked?.kind === 'card' && asked.index === card.index) || isCardFound(card, own, find),
    show: () => open({ kind: 'card', index: card.index }),
  }
}

function Edge({ parts, total, hue }: { parts: Share[]; total: number; hue: string }) {
  if (parts.length < 2) {
    return (
      <span className={`edge hue-${hue}`}>
        <i style={{ flex: 1 }} />
      </span>
    )
  }
  return (
    <span className="edge">
      {parts.map((part) => (
        <i
          key={part.person}
          className={`hue-${hueOf(part.person)}`}
          style={{ flex: Math.max(0.04, part.mib / Math.max(1, total)) }}
        />
      ))}
    </span>
  )
}

function Bars({ card, known, parts, hue, dense }: { card: Card; known: boolean; parts: Share[]; hue: string; dense?: boolean }) {
  const { t } = useTranslation()
  const load = card.utilization
  const memory = parts.length
    ? parts.map((part) => ({ hue: hueOf(part.person), share: part.mib / card.total_mib }))
    : [{ hue, share: card.used_mib / Math.max(1, card.total_mib) }]
  const loadText = known && load !== null ? `${load}%` : '–'
  return (
    <>
      <Measure
        className="load"
        short={t('card.loadshort')}
        label={t('card.loadof', { index: card.index })}
        parts={[{ hue, share: (load ?? 0) / 100 }]}
        text={loadText}
        unknown={!known || load === null}
        figure={<b>{loadText}</b>}
      />
      <Measure
        short={t('card.memoryshort')}
        label={t('card.memoryof', { index: card.index })}
        parts={memory}
        text={known ? `${gib(card.used_mib)} / ${gib(card.total_mib)} GiB` : '–'}
        unknown={!known}
        figure={
          known ? (
            <>
              <b>{gib(card.used_mib)}</b>
              {dense ? 'G' : ` / ${Math.round(card.total_mib / 1024)} GiB`}
            </>
          ) : (
            '–'
          )
        }
      />
    </>
  )
}

function GpuCard(props: CardProps) {
  const { t } = useTranslation()
  const { card, own, past } = props
  const { known, hue, parts, chosen, show } = useLook(card, own)
  const heat = known ? `${card.temperature ?? '–'}°C · ${card.power_w === null ? '–' : Math.round(card.power_w)} W` : '– °C · – W'
  return (
    <li className={`card${chosen ? ' open' : ''}${known ? '' : ' unknown'}`}>
      <Edge parts={parts} total={card.used_mib} hue={hue} />
      <button type="button" className="hit" aria-label={t('card.open', { index: card.index })} onClick={show} />
      <div className="head">
        <span className="index">{card.index}</span>
        <span className="model clip">{model(card.name)}</span>
        <span className="heat">{heat}</span>
      </div>
      <Bars card={card} known={known} parts={parts} hue={hue} />
      <Spark load={known ? (past?.load ?? []) : []} hue={hue} unknown={!known} />
      <Holders {...props} />
    </li>
  )
}

function DenseCell(props: CardProps) {
  const { t } = useTranslation()
  const { card, own } = props
  const { known, free, hue, parts, owner, chosen, show } = useLook(card, own)
  const ids = card.runs.map((run) => Number(run.split('.')[0]))
  const who = ids.length
    ? `#${ids[0]}${ids.length > 1 ? ` +${ids.length - 1}` : ''}`
    : owner || (free ? t('card.free') : t('people.hidden'))
  return (
    <li className={`cell${chosen ? ' open' : ''}${known ? '' : ' unknown'}`}>
      <Edge parts={parts} total={card.used_mib} hue={hue} />
      <button type="button" className="hit" aria-label={t('card.open', { index: card.index })} onClick={show} />
      <div className="head">
        <span className="index">{card.index}</span>
        {owner !== undefined && (
          <span className={`chip hue-${hueOf(owner)}`}>{owner === 'you' ? t('people.youinitial') : initialsOf(owner)}</span>
        )}
        <span className={`clip ${free ? 'free' : ''} ${known ? '' : 'fail'}`}>
          {known ? who : t(`cardstate.${card.state}`, { defaultValue: card.state })}
        </span>
      </div>
      <Bars dense card={card} known={known} parts={parts} hue={hue} />
      <DenseFoot {...props} />
    </li>
  )
}
