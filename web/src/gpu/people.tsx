import { useMemo } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation } from 'wouter'
import { type Past, useHistory, useLive } from '../api/hooks'
import type { Job } from '../api/types'
import { clock, gib } from '../model/format'
import { ACTIVE, isUnseen, since } from '../model/jobs'
import { idleSince, type Person, people } from '../model/people'
import { Icon } from '../parts/icons'
import { JobPill } from '../parts/pill'
import { spoken } from '../parts/spoken'
import { markSeen, useSeen } from '../seen'

const TILES = 8

/** A strip per person: cards held; and what ended since you last looked. */
export function PeopleStrip({ jobs }: { jobs: Job[] }) {
  const { t } = useTranslation()
  const { cards, link, engine, readAt } = useLive('cards', 'link', 'engine', 'readAt')
  const seen = useSeen()
  const past = useHistory('10m')
  const all = useMemo(() => people(cards?.gpus ?? []), [cards])
  const ended = useMemo(() => since(jobs, seen.at), [jobs, seen])
  const running = jobs.filter((job) => ACTIVE.has(job.state)).length
  const unread = cards !== null && cards.gpus.length > 0 && !cards.gpus.some((card) => card.state === 'ok')
  const stale = link === 'lost' || engine === false
  return (
    <div className={`people${stale ? ' stale' : ''}`}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways on a phone can be reached there */}
      <ul className="row" aria-label={t('people.title')} tabIndex={0}>
        {all.map((person) => (
          <li
            key={person.name}
            className={`person hue-${person.hue}${person.name === 'you' ? ' you' : ''}`}
            title={t('people.holds', { gib: gib(person.usedMib) })}
          >
            <span className="chip">{person.name === 'you' ? t('people.youinitial') : person.initials}</span>
            <b>{person.name === 'you' ? t('people.you') : person.name || t('people.hidden')}</b>
            <span className={`tiles${person.beside ? ' part' : ''}`}>
              {person.cards.slice(0, TILES).map((index) => (
                <i key={index} />
              ))}
            </span>
            <Held person={person} />
            <Idle person={person} past={past} />
            {person.name === 'you' && running > 0 && <> · {t('people.jobs', { count: running })}</>}
          </li>
        ))}
        {unread && <li className="person">{t('people.unknown', { at: readAt ? clock(readAt, Date.now(), true) : '–' })}</li>}
      </ul>
      {(ended.done > 0 || ended.failed > 0) && (
        <span className="lately">
          {seen.first ? t('people.lastday') : t('people.since', { at: clock(seen.at) })}
          {ended.done > 0 && (
            <span className="free row">
              <Icon name="tick" size={12} />
              {t('people.done', { count: ended.done })}
            </span>
          )}
          {ended.failed > 0 && (
            <span className="fail row">
              <Icon name="cross" size={12} />
              {t('people.failed', { count: ended.failed })}
            </span>
          )}
          <button type="button" className="btn small" onClick={markSeen}>
            {t('people.mark')}
          </button>
        </span>
      )}
    </div>
  )
}

/** The newest failure that nobody has looked at yet, where there is room for one thing only. */
export function Notice({ jobs }: { jobs: Job[] }) {
  const { t } = useTranslation()
  const [, go] = useLocation()
  const seen = useSeen()
  const [last] = jobs.filter((job) => isUnseen(job, seen)).sort((a, b) => (b.ended_at ?? 0) - (a.ended_at ?? 0))
  if (!last) return null
  return (
    <section className="notice" aria-label={t('jobs.unseen')}>
      <span className="grow">
        <span className="row">
          <span className="mono t3">{last.id}</span>
          <b className="strong clip">{last.name}</b>
          <JobPill job={last} />
        </span>
        <span className="t2">{last.reason?.text}</span>
      </span>
      <button type="button" className="btn" onClick={() => go(`/state/${last.id}`)}>
        {t('jobs.seeerror')}
      </button>
    </section>
  )
}

/** Since when somebody does nothing with any of the cards they have. */
function Idle({ person, past }: { person: Person; past: Past | undefined }) {
  const { t } = useTranslation()
  const since = idleSince(person, past?.gpus ?? [])
  if (since === null || !past) return null
  return <span className="wait">· {t('people.idle', { long: spoken(Date.now() / 1000 + past.ahead - since, t) })}</span>
}

/** How much of the cards a person has: whole ones, or a part beside somebody else. */
function Held({ person }: { person: Person }) {
  const { t } = useTranslation()
  const { name, beside, cards, usedMib } = person
  if (beside && name !== 'you')
    return t('people.beside', { gib: gib(usedMib), person: beside === 'you' ? t('people.you') : beside })
  return cards.length ? t('people.cards', { count: cards.length }) : t('people.none')
}
