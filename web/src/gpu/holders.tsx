// The lines of a card that say whose it is, since when, and whether it can be told when it is free.
import { useTranslation } from 'react-i18next'
import { useBlocked, useLive } from '../api/hooks'
import type { Card, CardHistory, Job } from '../api/types'
import { newJob, useDesk } from '../desk'
import { clock, gib, span } from '../model/format'
import { elapsed } from '../model/jobs'
import { hueOf, initialsOf, isFree, personOf } from '../model/people'
import { isOwn } from '../model/timeline'
import { spoken } from '../parts/spoken'

export interface CardProps {
  card: Card
  own: Set<string>
  jobs: Map<number, Job>
  now: number // by the clock of the host, in milliseconds
  past: CardHistory | undefined
}

type Words = (key: string, values?: Record<string, unknown>) => string

/** Two lines that say whose it is. */
export function Holders(props: CardProps) {
  const { card, own } = props
  if (card.state !== 'ok') return <Unread {...props} />
  return isFree(card, own) ? <Free {...props} /> : <Held {...props} />
}

function Unread({ card, jobs, now }: CardProps) {
  const { t } = useTranslation()
  const { readAt } = useLive('readAt')
  return (
    <>
      {card.runs.length > 0 ? (
        <MyLine card={card} jobs={jobs} right={t('card.stillrunning')} />
      ) : (
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

/** Why a card that cannot be read is as it is, in the page's own words; the driver's are in the title. */
export const unreadWhy = (card: Card, t: Words): string =>
  t(`card.why.${card.state}`, { defaultValue: card.error || t('card.nottaken') })

function Free({ card, past, now }: CardProps) {
  const { t } = useTranslation()
  const { open } = useDesk()
  const blocked = useBlocked()
  return (
    <>
      <div className="held">
        <span className="free strong">{freeFor(past, now, t)}</span>
        {!blocked && (
          <button type="button" className="link right above" onClick={() => open(newJob())}>
            {t('card.run')}
          </button>
        )}
      </div>
      <div className="held second t2 clip">{card.refusal?.text ?? whoBefore(past, now, t)}</div>
    </>
  )
}

const freeFor = (past: CardHistory | undefined, now: number, t: Words): string =>
  past?.free_since == null ? t('card.free') : t('card.freefor', { long: spoken(now / 1000 - past.free_since, t) })

/** Who had it last. The history calls somebody gone only after a while, the card itself at once. */
function whoBefore(past: CardHistory | undefined, now: number, t: Words): string {
  const last = past?.spans.findLast((one) => one.ended_at === null) ?? past?.before
  if (!last) return t('card.nobody')
  const long = span((last.ended_at ?? now / 1000) - last.began_at)
  if (isOwn(last)) return t('card.beforeyours', { job: last.job, long })
  return t('card.before', { who: last.user || t('people.hidden'), long })
}

function Held({ card, own, jobs, now, past }: CardProps) {
  const { t } = useTranslation()
  const others = card.holders.filter((holder) => personOf(holder, own) !== 'you')
  const mine = card.runs.length > 0
  const lines = others.slice(0, mine ? 1 : 2)
  return (
    <>
      {mine && <MyLine card={card} jobs={jobs} right={freeAt(card, t)} />}
      {mine &&
        others.length === 0 &&
        (card.idle_s ? (
          <Idle for={card.idle_s} bare={card.holders.length === 0} />
        ) : (
          <MyProcess card={card} jobs={jobs} now={now} />
        ))}
      {card.excluded && card.holders.length === 0 && !mine && <div className="held wait">{t('card.excluded')}</div>}
      {card.quarantine && <div className="held wait clip">{card.quarantine}</div>}
      {lines.map((holder, i) => (
        <div key={holder.pid} className={`held${i > 0 || mine ? ' second' : ''}`}>
          <span className={`chip hue-${hueOf(holder.user)}`}>{initialsOf(holder.user)}</span>
          <span className="mono">
            {holder.user}:{holder.pid} {holder.used_mib === null ? '–' : `${gib(holder.used_mib)}G`}
            {there(past, holder.pid, now)}
          </span>
          {i === lines.length - 1 && others.length > lines.length && (
            <span className="right">+{others.length - lines.length}</span>
          )}
        </div>
      ))}
      {lines.length === 1 && !mine && <Outlook past={past} now={now} />}
      {card.holders.length === 0 && !mine && !card.excluded && (
        <div className="held">
          <span className="chip hue-none">?</span>
          <span className="t2 clip">{t('card.hiddenuse')}</span>
        </div>
      )}
    </>
  )
}

/** When it is free: about, or at the latest; nothing where there is no telling. */
function freeAt(card: Card, t: Words): string | undefined {
  if (card.free_at != null) return t('card.freeat', { at: clock(card.free_at * 1000) })
  return card.free_by == null ? undefined : t('card.freeby', { at: clock(card.free_by * 1000) })
}

/** Who holds it and does nothing with it is told; else nobody knows when it will be free. */
function Outlook({ past, now }: { past: CardHistory | undefined; now: number }) {
  const { t } = useTranslation()
  if (past?.idle_since == null) return <div className="held second t2">{t('card.notelling')}</div>
  return <Idle for={now / 1000 - past.idle_since} />
}

/** `bare`: nothing is on it, so no memory either. */
function Idle({ for: seconds, bare }: { for: number; bare?: boolean }) {
  const { t } = useTranslation()
  const said = bare ? 'people.idle' : 'card.idle'
  return <div className="held second wait">{t(said, { long: spoken(seconds, t) })}</div>
}

function there(past: CardHistory | undefined, pid: number, now: number): string {
  const known = past?.spans.find((one) => one.pid === pid && one.ended_at === null)
  return known ? ` · ${span(now / 1000 - known.began_at)}` : ''
}

const runIds = (card: Card): number[] => card.runs.map((run) => Number(run.split('.')[0]))

function MyLine({ card, jobs, right }: { card: Card; jobs: Map<number, Job>; right?: string }) {
  const { t } = useTranslation()
  const { pick } = useDesk()
  const all = runIds(card)
  const inside = all.filter((id) => all.includes(jobs.get(id)?.inside ?? -1))
  const ids = inside.length ? inside : all // what runs in an allocation, rather than the allocation
  const [first] = ids
  if (first === undefined) return null
  const named = ids.slice(0, 4).map((id) => `#${id}`)
  const shared = inside.length ? named.join(' ') : t('card.shared', { ids: named.join(' ') })
  const what = ids.length === 1 ? `#${first} ${jobs.get(first)?.name ?? ''}` : shared
  const held = jobs.get(jobs.get(first)?.inside ?? -1)
  const label = inside.length && held ? t('card.inside', { what, name: held.name }) : what
  return (
    <div className="held">
      <span className="chip hue-you">{t('people.youinitial')}</span>
      <button type="button" className="link mono above clip" title={label} onClick={() => pick(first)}>
        {label}
      </button>
      {right && <span className="right">{right}</span>}
    </div>
  )
}

function MyProcess({ card, jobs, now }: { card: Card; jobs: Map<number, Job>; now: number }) {
  const own = card.holders.filter((holder) => holder.run)
  const [first] = own
  const job = jobs.get(runIds(card)[0] ?? -1)
  const long = job ? elapsed(job, now) : null
  return (
    <div className="held second mono t2">
      {first && `${first.user}:${first.pid} ${first.used_mib === null ? '–' : `${gib(first.used_mib)}G`} · `}
      {long !== null && span(long)}
      {own.length > 1 && ` +${own.length - 1}`}
    </div>
  )
}

/** One line for all of it, where there is little room. */
export function DenseFoot({ card, own, jobs, now, past }: CardProps) {
  const { t } = useTranslation()
  const job = jobs.get(runIds(card)[0] ?? -1)
  const [holder] = card.holders
  const said = (): string => {
    if (card.state !== 'ok') return unreadWhy(card, t)
    if (isFree(card, own)) return past?.free_since == null ? '' : freeFor(past, now, t)
    if (job && card.idle_s) return t('card.idledense', { long: span(card.idle_s) })
    if (job) return [freeAt(card, t), span(elapsed(job, now) ?? 0)].filter(Boolean).join(', ')
    if (past?.idle_since != null) return t('card.idledense', { long: span(now / 1000 - past.idle_since) })
    return holder ? `${holder.user}:${holder.pid}${there(past, holder.pid, now)}` : ''
  }
  const idle = card.state === 'ok' && !isFree(card, own) && (job ? !!card.idle_s : past?.idle_since != null)
  return (
    <span className={`foot clip${idle ? ' wait' : ''}${card.state === 'lost' ? ' fail' : ''}`} title={card.error}>
      {said()}
    </span>
  )
}
