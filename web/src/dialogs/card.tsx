// One card: can my jobs use it and why not, what it did, who is on it, what of mine ran here.
import { useTranslation } from 'react-i18next'
import { useLocation } from 'wouter'
import { useActs } from '../api/acts'
import { type Past, useHistory, useLive, useProcesses, useRights, useShownJobs } from '../api/hooks'
import { useDesk } from '../desk'
import { unreadWhy } from '../gpu/holders'
import { shown } from '../model/ansi'
import { cardCommand } from '../model/command'
import { clock, gib, model, span } from '../model/format'
import { elapsed } from '../model/jobs'
import { hueOf, initialsOf, isFree, ownNames, personOf, shares } from '../model/people'
import { isWatched, useWatched, watchCard } from '../parts/bell'
import { Command } from '../parts/controls'
import { Drawer } from '../parts/dialog'
import { Icon } from '../parts/icons'
import { JobPill } from '../parts/pill'
import { CardHistoryPanel } from './history'

const RAN_HERE = 8

/** Since when a process that tells nothing of itself was seen on a card, in milliseconds. */
function there(past: Past | undefined, pid: number): number | null {
  const seen = past?.gpus.flatMap((card) => card.spans).find((span) => span.pid === pid && span.ended_at === null)
  return seen ? seen.began_at * 1000 : null
}

export default function CardDrawer({ index, onClose }: { index: number; onClose: () => void }) {
  const { t } = useTranslation()
  const { open, pick } = useDesk()
  const { cards } = useLive('cards')
  const { mayWrite } = useRights()
  const { takeCard } = useActs()
  const processes = useProcesses()
  const past = useHistory('10m')
  const [, go] = useLocation()
  useWatched()
  const jobs = useShownJobs().jobs ?? []
  const gpus = cards?.gpus ?? []
  const card = gpus.find((one) => one.index === index)
  if (!card) return null
  const own = ownNames(gpus)
  const owner = shares(card, own)[0]?.person ?? ''
  const ran = jobs
    .filter((job) => job.gpu_uuids.includes(card.uuid) && job.started_at !== null)
    .sort((a, b) => (b.started_at ?? 0) - (a.started_at ?? 0))
  const step = (by: number): void => {
    const at = gpus.indexOf(card)
    const next = gpus[(at + by + gpus.length) % gpus.length]
    if (next) open({ kind: 'card', index: next.index })
  }
  const readable = card.state === 'ok'
  const said = !readable
    ? t('card.unknown', { why: unreadWhy(card, t) })
    : card.excluded
      ? t('card.excluded')
      : card.refusal
        ? t('card.refused', { why: card.refusal.text ?? card.refusal.code })
        : t('card.usable')
  return (
    <Drawer label={`GPU ${card.index}`} onClose={onClose} onArrow={step}>
      <header>
        <h2 tabIndex={-1} data-first>
          GPU {card.index}
        </h2>
        <span className="grow t3 clip" title={[card.name, card.uuid, card.pci].filter(Boolean).join(' ')}>
          {model(card.name)} · <span className="mono">{card.uuid}</span>
          {card.pci && ` · PCI ${card.pci.replace(/^0000:/, '')}`}
        </span>
        <button type="button" className="icon" aria-label={t('card.previous')} onClick={() => step(-1)}>
          <Icon name="left" />
        </button>
        <button type="button" className="icon" aria-label={t('card.next')} onClick={() => step(1)}>
          <Icon name="right" />
        </button>
        <button type="button" className="icon" aria-label={t('control.close')} onClick={onClose}>
          <Icon name="cross" />
        </button>
      </header>
      <div className="figures">
        <div>
          <span className="t2">{t('card.load')}</span>
          <b>{readable && card.utilization !== null ? `${card.utilization}%` : '–'}</b>
        </div>
        <div>
          <span className="t2">{t('card.memory')}</span>
          <b>
            {readable ? gib(card.used_mib) : '–'} <span className="t3">/ {gib(card.total_mib)} GiB</span>
          </b>
        </div>
        <div>
          <span className="t2">{t('card.temperature')}</span>
          <b>{readable && card.temperature !== null ? `${card.temperature}°C` : '–'}</b>
        </div>
        <div>
          <span className="t2">{t('card.power')}</span>
          <b>
            {readable && card.power_w !== null ? Math.round(card.power_w) : '–'}{' '}
            <span className="t3">{card.power_limit_w ? `/ ${Math.round(card.power_limit_w)} W` : 'W'}</span>
          </b>
        </div>
        {readable && card.fan != null && (
          <div>
            <span className="t2">{t('card.fan')}</span>
            <b>{card.fan}%</b>
          </div>
        )}
      </div>
      <p className="saying">
        <span className={`chip hue-${isFree(card, own) ? 'free' : hueOf(owner)}`}>
          {isFree(card, own) ? '✓' : owner === 'you' ? t('people.youinitial') : initialsOf(owner)}
        </span>
        <span className="strong">{said}</span>
      </p>
      <CardHistoryPanel
        uuid={card.uuid}
        hue={isFree(card, own) ? 'free' : hueOf(owner)}
        onPick={({ span: one }) => {
          if (one.job === null) return
          onClose()
          go(`/state/${one.job}`)
        }}
      />
      <section>
        <h3>{t('card.processes', { count: card.holders.length })}</h3>
        {card.holders.length === 0 ? (
          <p className="t2">{t('card.nobody')}</p>
        ) : (
          <table className="list">
            <thead>
              <tr>
                <th>{t('card.person')}</th>
                <th>pid</th>
                <th className="num">{t('card.memory')}</th>
                <th className="num">SM</th>
                <th className="num">{t('card.since')}</th>
                <th>{t('card.program')}</th>
              </tr>
            </thead>
            <tbody>
              {card.holders.map((holder) => {
                const person = personOf(holder, own)
                const known = processes.get(holder.pid)
                const program = shown(known?.command || holder.name || holder.exe || '').text
                const since = known?.since ?? there(past, holder.pid)
                return (
                  <tr key={holder.pid}>
                    <td>
                      <span className="row">
                        <span className={`chip hue-${hueOf(person)}`}>
                          {person === 'you' ? t('people.youinitial') : initialsOf(person)}
                        </span>
                        {person === 'you' ? t('people.you') : person || t('people.hidden')}
                      </span>
                    </td>
                    <td className="mono">{holder.pid}</td>
                    <td className="num strong">{holder.used_mib === null ? '–' : `${gib(holder.used_mib)} GiB`}</td>
                    <td className="num">{holder.sm == null ? '–' : `${holder.sm}%`}</td>
                    <td className="num">{since === null ? '–' : span((Date.now() - since) / 1000)}</td>
                    <td className="mono clip program" title={program}>
                      {holder.run ? `#${holder.run} ` : ''}
                      {program}
                    </td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        )}
      </section>
      <section>
        <h3>{t('card.ran', { count: ran.length })}</h3>
        <table className="list">
          <tbody>
            {ran.slice(0, RAN_HERE).map((job) => (
              <tr key={job.id}>
                <td className="mono t3">{job.id}</td>
                <td>
                  <button
                    type="button"
                    className="link"
                    onClick={() => {
                      pick(job.id)
                      onClose()
                    }}
                  >
                    {job.name}
                  </button>
                </td>
                <td>
                  <JobPill job={job} />
                </td>
                <td className="num">{span(elapsed(job, Date.now()) ?? 0)}</td>
                <td className="t3 num">{job.ended_at ? clock(job.ended_at * 1000) : ''}</td>
                <td className="t2 clip" title={job.reason?.text}>
                  {job.state === 'failed' ? (job.reason?.text ?? job.error_type) : ''}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      <footer>
        <button
          type="button"
          className="btn primary"
          disabled={isFree(card, own)}
          title={isFree(card, own) ? t('card.freenow') : undefined}
          aria-pressed={isWatched(card.uuid)}
          onClick={() => void watchCard(card.uuid)}
        >
          <Icon name="bell" />
          {isWatched(card.uuid) ? t('card.watching') : t('card.tell')}
        </button>
        <button
          type="button"
          className="btn"
          disabled={!mayWrite}
          title={mayWrite ? undefined : t('shell.readonly')}
          onClick={() => void takeCard(card.index, card.excluded)}
        >
          <Icon name={card.excluded ? 'tick' : 'ban'} />
          {card.excluded ? t('card.include') : t('card.exclude')}
        </button>
        <span className="grow" />
        <Command text={cardCommand(card.index, card.excluded)} />
      </footer>
    </Drawer>
  )
}
