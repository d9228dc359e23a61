// Header, rail and banners around every page.
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useLocation } from 'wouter'
import { useBlocked, useJobs, useLive, useStatus } from './api/hooks'
import { newJob, useDesk } from './desk'
import { Dialogs } from './dialogs'
import { Health } from './health'
import { HostFacts } from './host'
import { clock } from './model/format'
import { ACTIVE, isUnseen } from './model/jobs'
import { forYou, isFree, ownNames } from './model/people'
import { PAGES } from './nav'
import { LanguageChoice, ThemeChoice } from './parts/choices'
import { Command } from './parts/controls'
import { Guard } from './parts/guard'
import { Icon, Mark } from './parts/icons'
import { KEYMAP } from './parts/keymap'
import { type Keys, useKeys } from './parts/keys'
import { useNow } from './parts/now'
import { useSeen } from './seen'

const CARDS = KEYMAP.find((line) => line.name === 'card')?.keys ?? []

export function Shell({ children }: { children: ReactNode }) {
  const { t } = useTranslation()
  const desk = useDesk()
  const [, go] = useLocation()
  const [menu, setMenu] = useState(false)
  const find = useRef<HTMLInputElement>(null)
  const blocked = useBlocked()

  const keys: Keys = {
    '/': () => find.current?.focus(),
    '?': () => desk.open({ kind: 'keys' }),
    n: () => !blocked && desk.open(newJob()),
    N: () => !blocked && desk.open(newJob()),
    Escape: () => setMenu(false),
  }
  for (const [path, , , letter] of PAGES) keys[`g ${letter}`] = () => go(path)
  for (const i of CARDS) keys[i] = () => desk.open({ kind: 'card', index: Number(i) })
  useKeys(keys)

  return (
    <div className="shell">
      <a className="skip" href="#main">
        {t('shell.skip')}
      </a>
      <div className="brand">
        <Mark />
      </div>
      <header className="top">
        <button
          type="button"
          className="icon burger"
          aria-expanded={menu}
          aria-label={t('shell.menu')}
          onClick={() => setMenu(!menu)}
        >
          <Icon name="menu" size={20} />
        </button>
        <span className="word">
          jostle<span>抢卡</span>
        </span>
        <Badge />
        <FreeCount />
        <HostFacts />
        <Health />
        <span className="grow" />
        <button type="button" className="icon findicon" aria-label={t('shell.find')} onClick={() => find.current?.focus()}>
          <Icon name="find" />
        </button>
        <span className={`field find${desk.find ? ' used' : ''}`}>
          <Icon name="find" />
          <input
            ref={find}
            type="search"
            aria-label={t('shell.find')}
            placeholder={t('shell.find')}
            value={desk.find}
            onChange={(event) => desk.setFind(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === 'Escape') {
                if (desk.find) desk.setFind('')
                else find.current?.blur()
              } else if (event.key === 'Enter' && desk.find) go('/state')
            }}
          />
          <kbd>/</kbd>
        </span>
        <button
          type="button"
          className="btn primary new"
          aria-label={t('shell.new')}
          disabled={blocked !== undefined}
          title={blocked}
          onClick={() => desk.open(newJob())}
        >
          <Icon name="plus" />
          <span>{t('shell.new')}</span>
          <kbd>N</kbd>
        </button>
        <LanguageChoice />
        <ThemeChoice />
        <Me />
      </header>
      <Rail open={menu} onGo={() => setMenu(false)} />
      <Herald />
      <main className="main" id="main" tabIndex={-1}>
        <Banners />
        {children}
      </main>
      <Guard key={desk.asked?.kind}>
        <Dialogs />
      </Guard>
    </div>
  )
}

function Badge() {
  const { t } = useTranslation()
  const { link, engine } = useLive('link', 'engine')
  const look = link === 'live' && engine === false ? 'engine' : link
  return (
    <output className={`badge ${look === 'live' ? '' : look === 'joining' ? 'joining' : 'lost'}`} aria-live="polite">
      {t(`link.${look}`)}
    </output>
  )
}

function FreeCount() {
  const { t } = useTranslation()
  const { cards, link, engine } = useLive('cards', 'link', 'engine')
  const gpus = cards?.gpus ?? []
  const free = useMemo(() => gpus.filter((card) => isFree(card, ownNames(gpus))).length, [gpus])
  const read = gpus.some((card) => card.state === 'ok')
  const known = link === 'live' && engine !== false && read
  useEffect(() => {
    document.title = gpus.length ? t('shell.title', { free: known ? free : '?', total: gpus.length }) : 'jostle'
  }, [t, free, known, gpus.length])
  if (!cards) return null
  if (!known) {
    const before = read ? t('shell.before', { free, total: gpus.length }) : t('shell.unknown')
    return <span className="freecount t2">{gpus.length || cards.error ? before : t('shell.nocards')}</span>
  }
  const mine = Math.min(gpus.filter(forYou).length, cards.more ?? gpus.length)
  const lost = gpus.filter((card) => card.state !== 'ok' && card.state !== 'mig').length
  return (
    <span className="freecount">
      {t('shell.free', { count: free })} <span className="of">{t('shell.of', { count: gpus.length })}</span>
      {engine && (
        <>
          {' · '}
          <span className="mine">{t('shell.mine', { count: mine })}</span>
        </>
      )}
      {lost > 0 && (
        <>
          {' · '}
          <span className="fail">{t('shell.lostcards', { count: lost })}</span>
        </>
      )}
    </span>
  )
}

function Me() {
  const { t } = useTranslation()
  const status = useStatus()
  return (
    <Link
      href="/setting"
      className="chip hue-you me"
      title={status?.user}
      aria-label={t('shell.me', { user: status?.user ?? '' })}
    >
      {t('people.youinitial')}
    </Link>
  )
}

const SAID_MS = 15_000

/** For those who hear the page: what the first screen says, when it has changed, not more often than this. */
function Herald() {
  const { t } = useTranslation()
  const { cards, link, engine } = useLive('cards', 'link', 'engine')
  const jobs = useJobs().data?.jobs
  const unseen = useUnseen()
  const gpus = cards?.gpus ?? []
  const count = (states: ReadonlySet<string>): number => jobs?.filter((job) => states.has(job.state)).length ?? 0
  const summary =
    cards && jobs && link === 'live' && engine
      ? t('shell.summary', {
          free: gpus.filter((card) => isFree(card, ownNames(gpus))).length,
          total: gpus.length,
          running: count(ACTIVE),
          waiting: count(new Set(['queued'])),
          failed: unseen,
        })
      : ''
  const [said, setSaid] = useState('')
  const latest = useRef(summary)
  latest.current = summary
  useEffect(() => {
    const timer = setInterval(() => setSaid(latest.current), SAID_MS)
    return () => clearInterval(timer)
  }, [])
  return (
    <output className="sr" aria-live="polite">
      {said}
    </output>
  )
}

function useUnseen(): number {
  const seen = useSeen()
  const jobs = useJobs().data?.jobs
  return useMemo(() => jobs?.filter((job) => isUnseen(job, seen)).length ?? 0, [jobs, seen])
}

function Rail({ open, onGo }: { open: boolean; onGo: () => void }) {
  const { t } = useTranslation()
  const desk = useDesk()
  const [at] = useLocation()
  const unseen = useUnseen()
  return (
    <nav className={`rail${open ? ' open' : ''}`} aria-label={t('shell.pages')}>
      {PAGES.map(([path, name, icon]) => (
        <Link
          key={path}
          href={path}
          onClick={onGo}
          aria-current={at.startsWith(path) ? 'page' : undefined}
          title={t(`page.${name}`)}
        >
          <Icon name={icon} size={18} />
          <span>{t(`page.${name}`)}</span>
          {name === 'state' && unseen > 0 && (
            <b className="dot" title={t('shell.unseen', { count: unseen })}>
              {unseen > 99 ? '99+' : unseen}
            </b>
          )}
        </Link>
      ))}
      <LanguageChoice />
      <ThemeChoice />
      <Foot onKeys={() => desk.open({ kind: 'keys' })} />
    </nav>
  )
}

function Foot({ onKeys }: { onKeys: () => void }) {
  const { t } = useTranslation()
  const now = useNow()
  const { heardAt, link, version } = useLive('heardAt', 'link', 'version')
  const ago = heardAt === null ? null : Math.max(0, Math.round((now - heardAt) / 1000))
  return (
    <div className="foot">
      {heardAt !== null && ago !== null && (
        <span>
          {link === 'live' ? t('shell.updated', { count: ago }) : t('shell.stopped', { at: clock(heardAt, now, true) })}
        </span>
      )}
      <span>{version}</span>
      <button type="button" className="icon" aria-label={t('keys.title')} title={t('keys.title')} onClick={onKeys}>
        <kbd>?</kbd>
      </button>
    </div>
  )
}

function Banners() {
  const { t } = useTranslation()
  const now = useNow()
  const { link, engine, cards, hold, engineLostAt, heardAt, retryAt } = useLive(
    'link',
    'engine',
    'cards',
    'hold',
    'engineLostAt',
    'heardAt',
    'retryAt',
  )
  const running = useJobs().data?.jobs.filter((job) => job.state === 'running').length ?? 0
  if (link === 'lost') {
    const left = retryAt ? Math.max(0, Math.ceil((retryAt - now) / 1000)) : 0
    return (
      <div className="banner" role="alert">
        <Icon name="warn" />
        <strong>{t('banner.link', { at: heardAt ? clock(heardAt, now, true) : '–' })}</strong>
        <span className="grow t2">{t('banner.unharmed')}</span>
        <span className="t2">{t('banner.retry', { count: left })}</span>
        <Command text="jostle up" />
      </div>
    )
  }
  if (engine === false) {
    return (
      <div className="banner" role="alert">
        <Icon name="warn" />
        <strong>{t('banner.engine', { at: engineLostAt ? clock(engineLostAt, now, true) : '–' })}</strong>
        <span className="grow t2">{t('banner.running', { count: running })}</span>
        <Command text="jostle up" />
      </div>
    )
  }
  const driver = cards?.error
  if (driver || hold) {
    return (
      <div className="banner amber" role="alert">
        <Icon name="warn" />
        <strong>{driver ? t('banner.driver') : t('banner.hold')}</strong>
        <span className="grow t2">{hold || driver}</span>
        <Command text="jostle doctor" />
      </div>
    )
  }
  return null
}
