// Cards that are held under a name: since when, what runs on them, how long nothing does; started, resized, given back.
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link } from 'wouter'
import { useBlocked, useLive } from '../api/hooks'
import type { Against } from '../api/types'
import { jobCommand, releaseCommand } from '../model/command'
import { clock, gib, span } from '../model/format'
import { FINAL, lookOf } from '../model/jobs'
import { Act } from '../parts/act'
import { Confirm } from '../parts/dialog'
import { Icon } from '../parts/icons'
import { useNow } from '../parts/now'
import { Pill } from '../parts/pill'
import { spoken } from '../parts/spoken'
import { Verdict } from '../parts/verdict'
import { Why } from '../parts/why'
import { type Allocation, useAllocations, useHolding } from './data'
import { ResizeDialog, StartDialog } from './dialogs'

export function Allocations() {
  const { t } = useTranslation()
  const { data, error } = useAllocations()
  const all = data?.allocations ?? []
  return (
    <section className="panel holdlist" aria-label={t('hold.title')}>
      <header>
        <h2>{t('hold.title')}</h2>
        <span className="pill">{all.length}</span>
        <span className="t2 clip">{t('hold.what')}</span>
      </header>
      {error && <p className="note fail">{error.message}</p>}
      {data && all.length === 0 && <p className="note">{t('hold.none')}</p>}
      <ul>
        {all.map((one) => (
          <One key={one.id} one={one} />
        ))}
      </ul>
    </section>
  )
}

const IDLE_FOR = 60 // s before it is worth a word

type Asked = 'start' | 'resize' | 'release' | null

function One({ one }: { one: Allocation }) {
  const { t } = useTranslation()
  const now = useNow(5000)
  const blocked = useBlocked()
  const { release } = useHolding()
  const [asked, setAsked] = useState<Asked>(null)
  const holds = one.state === 'running'
  const inside = one.programs.filter((program) => !FINAL.has(program.state))
  const [least = 0, most = 0] = one.gpu_request
  const size = one.memory_mib === null ? t('hold.whole') : `${gib(one.memory_mib)} GiB`
  return (
    <li className="holding" aria-label={one.name}>
      <div className="row">
        <b className="strong">{one.name}</b>
        <span className="mono t3">#{one.id}</span>
        {holds ? (
          <span className="pill accent">
            <Icon name="lock" size={10} />
            {t('hold.holds')}
          </span>
        ) : (
          <Pill look={lookOf({ ...one, attempt: 0 })} />
        )}
        <span className="strong">{holds ? t('hold.on', { gpus: one.gpus.join(', ') }) : t('hold.wants', { count: most })}</span>
        <span className="t2">
          {least === most ? '' : `${t('hold.range', { least, most })} · `}
          {size}
        </span>
        <span className="grow" />
        <button
          type="button"
          className="btn small"
          disabled={!holds || blocked !== undefined}
          title={blocked}
          onClick={() => setAsked('start')}
        >
          <Icon name="play" size={11} />
          {t('hold.start')}
        </button>
        <button
          type="button"
          className="btn small"
          disabled={blocked !== undefined}
          title={blocked}
          onClick={() => setAsked('resize')}
        >
          {t('hold.resize')}
        </button>
        <Act look="small warn" blocked={blocked} command={releaseCommand(one.name)} onDo={() => setAsked('release')}>
          {t('hold.release')}
        </Act>
      </div>
      {holds && (
        <p className="t2">
          {one.since !== null && t('hold.since', { long: span(now / 1000 - one.since) })}
          {' · '}
          {one.until === null ? t('hold.noend') : t('hold.until', { at: clock(one.until * 1000, now) })}
          {one.idle_release !== null && ` · ${t('hold.idlerelease', { long: spoken(one.idle_release, t) })}`}
          {one.tied_to && ` · ${t('hold.tied', { pid: one.tied_to[0] })}`}
          {one.idle_s !== null && one.idle_s >= IDLE_FOR && (
            <>
              {' · '}
              <b className="wait">{t('hold.idle', { long: spoken(one.idle_s, t) })}</b>
            </>
          )}
        </p>
      )}
      {!holds && one.reason?.text && (
        <p className="t2">
          <Why reason={one.reason} />
        </p>
      )}
      {!holds && <Strip one={one} />}
      {one.programs.length > 0 && (
        <ul className="programs" aria-label={t('hold.inside')}>
          {one.programs.map((program) => (
            <li key={program.id} className="row">
              <span className="mono t3">#{program.id}</span>
              <Link className="link clip" href={`/state/${program.id}`}>
                {program.name}
              </Link>
              <Pill look={lookOf({ ...program, intent: 'run', reason: null, attempt: 1 })} />
              <span className="t2">{program.gpus.length ? `GPU ${program.gpus.join(', ')}` : ''}</span>
            </li>
          ))}
        </ul>
      )}
      {asked === 'start' && <StartDialog one={one} beside={inside.length > 0} onClose={() => setAsked(null)} />}
      {asked === 'resize' && <ResizeDialog one={one} onClose={() => setAsked(null)} />}
      {asked === 'release' && (
        <Confirm
          title={t('hold.releasetitle', { name: one.name })}
          keep={t('hold.keep')}
          act={t('hold.dorelease')}
          command={releaseCommand(one.name)}
          onDo={() => void release(one)}
          onClose={() => setAsked(null)}
        >
          <p className="t2">
            {inside.length
              ? t('hold.dies', {
                  count: inside.length,
                  names: inside.map((program) => `#${program.id} ${program.name}`).join(', '),
                })
              : holds
                ? t('hold.frees', { gpus: one.gpus.join(', ') })
                : t('hold.givesup')}
          </p>
          {inside.length > 0 && <code>{jobCommand('show', [one.id])}</code>}
        </Confirm>
      )}
    </li>
  )
}

function Strip({ one }: { one: Allocation }) {
  const { cards } = useLive('cards')
  const refused = new Map<number, Against | null>(one.reason?.gpus?.map((refusal) => [refusal.index, refusal]))
  return cards && refused.size ? <Verdict cards={cards.gpus} refused={refused} /> : null
}
