import { useMemo, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import { type Known, useBlocked, useLive, useProcesses, useStatus } from '../api/hooks'
import { live } from '../api/live'
import type { Card, Job } from '../api/types'
import { newJob, useDesk } from '../desk'
import { clock, gib, model, span } from '../model/format'
import { elapsed } from '../model/jobs'
import { hueOf, initialsOf, isFree, ownNames, personOf, type Share, shares } from '../model/people'
import { Measure } from '../parts/meter'
import { useNow } from '../parts/now'
import { Spark } from '../parts/spark'

const DENSE_FROM = 16
const PLACEHOLDERS = 4

interface GridProps {
  cards: Card[]
  jobs: Job[]
  loaded: boolean
}

export function CardGrid({ cards, jobs, loaded }: GridProps) {
  const { t } = useTranslation()
  const now = useNow()
  const own = useMemo(() => ownNames(cards), [cards])
  const byId = useMemo(() => new Map(jobs.map((job) => [job.id, job])), [jobs])
  const since = useSince(cards, own)
  const processes = useProcesses()
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
  if (cards.length === 0) return <p className="panel note">{t('card.nonehere')}</p>
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
            now={now}
            since={since.get(card.uuid) ?? null}
            processes={processes}
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

/** Since when each card is free or held, as far as this tab saw it change. What it never saw change is not guessed. */
function useSince(cards: readonly Card[], own: Set<string>): Map<string, number> {
  const last = useRef(new Map<string, string>())
  const since = useRef(new Map<string, number>())
  for (const card of cards) {
    const owner = isFree(card, own)
      ? 'free'
      : shares(card, own)
          .map((share) => share.person)
          .join()
    const before = last.current.get(card.uuid)
    if (before !== undefined && before !== owner) since.current.set(card.uuid, Date.now())
    last.current.set(card.uuid, owner)
  }
  return since.current
}

interface CardProps {
  card: Card
  own: Set<string>
  jobs: Map<number, Job>
  now: number
  since: number | null
  processes: Map<number, Known>
}

function useLook(card: Card, own: Set<string>) {
  const { asked, open } = useDesk()
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
    chosen: asked?.kind === 'card' && asked.index === card.index,
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
  const { card, own, now } = props
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
      <Spark samples={live.samples.get(card.uuid) ?? []} now={now} hue={hue} />
      <Holders {...props} />
    </li>
  )
}

/** Two lines that say whose it is. */
function Holders({ card, own, jobs, now, since, processes }: CardProps) {
  const { t } = useTranslation()
  const { readAt } = useLive()
  const { open } = useDesk()
  const blocked = useBlocked()
  if (card.state !== 'ok') {
    return (
      <>
        <Mine card={card} jobs={jobs} now={now} right={t('card.stillrunning')} />
        {card.runs.length === 0 && (
          <div className="held" title={card.error}>
            <span className={`strong${card.state === 'lost' ? ' fail' : ''}`}>
              {t(`cardstate.${card.state}`, { defaultValue: card.state })}
            </span>
            <span className="right clip">{unreadWhy(card, t)}</span>
          </div>
        )}
        <div className="held second t2">{readAt !== null && t('card.lastread', { at: clock(readAt, now, true) })}</div>
      </>
    )
  }
  if (isFree(card, own)) {
    const long = since === null ? '' : span((now - since) / 1000)
    return (
      <>
        <div className="held">
          <span className="free strong">{long ? t('card.freefor', { long }) : t('card.free')}</span>
          {!blocked && (
            <button type="button" className="link right above" onClick={() => open(newJob())}>
              {t('card.run')}
            </button>
          )}
        </div>
        <div className="held second t2">{card.refusal?.text ?? t('card.nobody')}</div>
      </>
    )
  }
  const others = card.holders.filter((holder) => personOf(holder, own) !== 'you')
  const lines = others.slice(0, card.runs.length ? 1 : 2)
  return (
    <>
      <Mine card={card} jobs={jobs} now={now} />
      {card.excluded && card.holders.length === 0 && card.runs.length === 0 && (
        <div className="held wait">{t('card.excluded')}</div>
      )}
      {card.quarantine && <div className="held wait clip">{card.quarantine}</div>}
      {lines.map((holder, i) => (
        <div key={holder.pid} className={`held${i > 0 || card.runs.length ? ' second' : ''}`}>
          <span className={`chip hue-${hueOf(holder.user)}`}>{initialsOf(holder.user)}</span>
          <span className="mono">
            {holder.user}:{holder.pid} {holder.used_mib === null ? '–' : `${gib(holder.used_mib)}G`}
            {long(processes.get(holder.pid), now)}
          </span>
          {i === lines.length - 1 && others.length > lines.length && (
            <span className="right">+{others.length - lines.length}</span>
          )}
        </div>
      ))}
      {lines.length < 2 && !card.runs.length && <div className="held second t2">{t('card.notelling')}</div>}
      {card.holders.length === 0 && card.runs.length === 0 && !card.excluded && (
        <div className="held">
          <span className="chip hue-none">?</span>
          <span className="t2 clip">{t('card.hiddenuse')}</span>
        </div>
      )}
    </>
  )
}

/** Why a card that cannot be read is as it is, in the page's own words; the driver's are in the title. */
export const unreadWhy = (card: Card, t: (key: string, values?: Record<string, unknown>) => string): string =>
  t(`card.why.${card.state}`, { defaultValue: card.error || t('card.nottaken') })

const long = (process: Known | undefined, now: number): string =>
  process?.since ? ` · ${span((now - process.since) / 1000)}` : ''

function Mine({ card, jobs, now, right }: { card: Card; jobs: Map<number, Job>; now: number; right?: string }) {
  const { t } = useTranslation()
  const { pick } = useDesk()
  if (card.runs.length === 0) return null
  const ids = card.runs.map((run) => Number(run.split('.')[0]))
  const first = jobs.get(ids[0] ?? -1)
  const long = first ? elapsed(first, now) : null
  const pids = card.holders.filter((holder) => holder.run)
  const label =
    ids.length === 1
      ? `#${ids[0]} ${first?.name ?? ''}`
      : t('card.shared', {
          ids: ids
            .slice(0, 4)
            .map((id) => `#${id}`)
            .join(' '),
        })
  return (
    <>
      <div className="held">
        <span className="chip hue-you">{t('people.youinitial')}</span>
        <button type="button" className="link mono above clip" title={label} onClick={() => ids[0] !== undefined && pick(ids[0])}>
          {label}
        </button>
        {(right || long !== null) && <span className="right">{right ?? span(long ?? 0)}</span>}
      </div>
      {pids.length > 0 && !card.holders.some((holder) => !holder.run) && (
        <div className="held second mono t2">
          {pids[0]?.user}:{pids[0]?.pid} {pids[0]?.used_mib == null ? '–' : `${gib(pids[0].used_mib)}G`}
          {pids.length > 1 && ` +${pids.length - 1}`}
        </div>
      )}
    </>
  )
}

function DenseCell({ card, own, jobs, now, since, processes }: CardProps) {
  const { t } = useTranslation()
  const { known, free, hue, parts, owner, show } = useLook(card, own)
  const ids = card.runs.map((run) => Number(run.split('.')[0]))
  const job = jobs.get(ids[0] ?? -1)
  const who = ids.length
    ? `#${ids[0]}${ids.length > 1 ? ` +${ids.length - 1}` : ''}`
    : owner || (free ? t('card.free') : t('people.hidden'))
  const began = processes.get(card.holders[0]?.pid ?? -1)?.since ?? since
  const ran = job ? elapsed(job, now) : began === null ? null : (now - began) / 1000
  return (
    <li className={`cell${known ? '' : ' unknown'}`}>
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
      <span className="foot clip" title={card.error}>
        {known ? (ran === null ? '' : span(ran)) : unreadWhy(card, t)}
      </span>
    </li>
  )
}
