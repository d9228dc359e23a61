import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { failed } from '../api/acts'
import { post } from '../api/call'
import { useRights } from '../api/hooks'
import type { Job } from '../api/types'
import { plain, spans } from '../model/ansi'
import { jobCommand } from '../model/command'
import { size } from '../model/format'
import { find, type Line, traceback } from '../model/logtext'
import { copyText, Switch } from '../parts/controls'
import { Icon, type IconName } from '../parts/icons'
import { useKeys } from '../parts/keys'
import { say } from '../parts/toast'
import { useLog } from './source'

const LINE = 16
const SHOWN_CHARS = 4000 // of one line; a line of a megabyte must not hold up the page
const NEAR_END = 24

interface LogProps {
  job: Job
  run?: number | null
  compact?: boolean // with its own title and tabs, beside other things
}

export function LogPanel({ job, run: given = null, compact = false }: LogProps) {
  const { t } = useTranslation()
  const { mayWrite } = useRights()
  const [chosen, setChosen] = useState<{ job: number; run: number } | null>(null)
  const run = compact ? (chosen?.job === job.id ? chosen.run : null) : given
  const source = useLog(job.id, run, job.attempt, mayWrite)
  const [follow, setFollow] = useState(true)
  const [wrap, setWrap] = useState(false)
  const [searching, setSearching] = useState(false)
  const [wanted, setWanted] = useState('')
  const [match, setMatch] = useState(0)
  const [seen, setSeen] = useState(0) // of all lines that ever came
  const place = useRef<HTMLDivElement>(null)
  const { version } = source
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version stands for the text
  const lines = useMemo(() => source.text.shown.slice(), [source.text, version])
  const arrived = source.text.arrived
  const pinned = useMemo(() => (job.state === 'failed' ? traceback(lines) : null), [lines, job.state])
  const hits = useMemo(() => (searching ? find(lines, wanted) : []), [lines, searching, wanted])

  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => place.current,
    estimateSize: () => LINE,
    overscan: 20,
    measureElement: wrap ? (element) => element.getBoundingClientRect().height : undefined,
  })

  useEffect(() => {
    if (follow && lines.length) {
      rows.scrollToIndex(lines.length - 1, { align: 'end' })
      setSeen(arrived)
    }
  }, [follow, lines.length, arrived, rows])
  // biome-ignore lint/correctness/useExhaustiveDependencies: lines have other heights when they wrap
  useEffect(() => rows.measure(), [wrap])
  const followed = useRef(follow)
  followed.current = follow
  useEffect(() => {
    const div = place.current
    if (!div) return
    const watch = new ResizeObserver(() => {
      if (followed.current) div.scrollTop = div.scrollHeight
    })
    watch.observe(div)
    return () => watch.disconnect()
  }, [])
  // biome-ignore lint/correctness/useExhaustiveDependencies: another job is followed from its end
  useEffect(() => {
    setFollow(true)
    setSeen(0)
  }, [job.id, run])

  const scrolled = (): void => {
    const div = place.current
    if (!div) return
    const atEnd = div.scrollHeight - div.scrollTop - div.clientHeight < NEAR_END
    if (!atEnd && follow && lines.length * LINE > div.clientHeight) setFollow(false)
    else if (atEnd && !follow) setFollow(true)
  }
  const goTo = (index: number): void => {
    setFollow(false)
    rows.scrollToIndex(index, { align: 'center' })
  }
  const next = (by: number): void => {
    if (!hits.length) return
    const at = (match + by + hits.length) % hits.length
    setMatch(at)
    goTo(hits[at] ?? 0)
  }
  const copy = async (): Promise<void> => {
    const done = await copyText(lines.map((line) => plain(line.text)).join('\n'))
    say({ text: done ? t('log.copied', { count: lines.length }) : t('log.nocopy'), bad: !done })
  }
  const download = async (): Promise<void> => {
    try {
      const { url } = await post<{ url: string }>(`/api/v1/logs/${job.id}/ticket`, undefined, { run: source.run })
      const link = document.createElement('a')
      link.href = url
      link.download = ''
      link.click()
    } catch (error) {
      failed(error)
    }
  }
  useKeys({
    f: () => setFollow(!follow),
    w: () => setWrap(!wrap),
    n: () => hits.length > 0 && next(1),
    N: () => hits.length > 0 && next(-1),
    G: () => setFollow(true),
  })
  const earlier = async (): Promise<void> => {
    const top = place.current?.scrollTop ?? 0
    setFollow(false)
    const count = await source.earlier()
    rows.scrollToOffset(top + count * LINE) // what was read stays where it is
  }
  const fresh = arrived - seen
  return (
    <section className="panel logpanel" aria-label={t('log.of', { id: job.id })}>
      <header>
        {compact && <h2>{t('log.of', { id: job.id })}</h2>}
        {compact && <Tries runs={source.runs} shown={source.run} onPick={(n) => setChosen({ job: job.id, run: n })} />}
        <span className="t3 nowrap">{t('log.lines', { count: lines.length + source.text.dropped })}</span>
        {searching && (
          <span className="field" style={{ height: 24 }}>
            <input
              type="search"
              aria-label={t('log.search')}
              placeholder={t('log.search')}
              value={wanted}
              // biome-ignore lint/a11y/noAutofocus: it appears because one wants to type into it
              autoFocus
              onChange={(event) => {
                setWanted(event.target.value)
                setMatch(0)
              }}
              onKeyDown={(event) => {
                if (event.key === 'Enter') next(event.shiftKey ? -1 : 1)
                else if (event.key === 'Escape') {
                  if (wanted) setWanted('')
                  else setSearching(false)
                }
              }}
            />
            <span className="t3 nowrap">{wanted ? `${hits.length ? match + 1 : 0} / ${hits.length}` : ''}</span>
          </span>
        )}
        <span className="tools">
          <Tool icon="find" label={t('log.search')} pressed={searching} onClick={() => setSearching(!searching)} />
          <Tool icon="wrap" label={t('log.wrap')} pressed={wrap} onClick={() => setWrap(!wrap)} />
          <Tool icon="copy" label={t('log.copy')} onClick={() => void copy()} />
          <Tool icon="down" label={t('log.download')} disabled={!mayWrite} onClick={() => void download()} />
          <span className="t2">{t('log.follow')}</span>
          <Switch label={t('log.follow')} checked={follow} onChange={setFollow} />
        </span>
      </header>
      {pinned && (
        <div className="pinned">
          <button type="button" className="link" onClick={() => goTo(pinned.from)}>
            <h3>{t('log.traceback', { line: pinned.from + 1, total: lines.length })}</h3>
          </button>
          <pre>
            {lines.slice(Math.max(pinned.from + 1, pinned.to - 6), pinned.to).map((line, i) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name
              <span key={i}>{`${plain(line.text).slice(0, 400)}\n`}</span>
            ))}
            <span className="err">{plain(lines[pinned.to]?.text ?? '').slice(0, 1000)}</span>
          </pre>
        </div>
      )}
      <div
        ref={place}
        className={`loglines${wrap ? ' wrap' : ''}`}
        onScroll={scrolled}
        role="log"
        aria-live="off"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls is reached by keyboard
        tabIndex={0}
        aria-label={t('log.of', { id: job.id })}
      >
        {source.from > 0 && (
          <div className="line">
            <button type="button" className="link" onClick={() => void earlier().catch(failed)}>
              {t('log.earlier', { size: size(source.from) })}
            </button>
          </div>
        )}
        {source.error && <div className="line fail">{source.error}</div>}
        {!source.error && lines.length === 0 && (
          <div className="line t3">
            {!mayWrite ? t('log.readonly') : job.started_at === null ? t('log.notstarted') : t('log.nothing')}
          </div>
        )}
        <div style={{ height: rows.getTotalSize(), position: 'relative' }}>
          {rows.getVirtualItems().map((row) => {
            const line = lines[row.index]
            return (
              line && (
                <div
                  key={row.key}
                  ref={wrap ? rows.measureElement : undefined}
                  data-index={row.index}
                  className={`line${hits[match] === row.index ? ' hit' : ''}`}
                  style={{
                    position: 'absolute',
                    top: 0,
                    left: 0,
                    right: wrap ? 0 : undefined,
                    transform: `translateY(${row.start}px)`,
                  }}
                >
                  <LineText line={line} wanted={searching ? wanted : ''} />
                </div>
              )
            )
          })}
        </div>
      </div>
      {!follow && fresh > 0 && (
        <button type="button" className="btn small primary newlines" onClick={() => setFollow(true)}>
          {t('log.new', { count: fresh })}
        </button>
      )}
      {!compact && (
        <footer className="t2">
          <span className="grow">
            {t('log.lines', { count: lines.length + source.text.dropped })} · {size(source.size)} ·{' '}
            {source.over ? t('log.over') : t('log.live')}
          </span>
          <code>{jobCommand('logs', [job.id])}</code>
        </footer>
      )}
    </section>
  )
}

interface ToolProps {
  icon: IconName
  label: string
  pressed?: boolean
  disabled?: boolean
  onClick: () => void
}

const Tool = ({ icon, label, pressed, disabled, onClick }: ToolProps) => (
  <button
    type="button"
    className="icon"
    aria-label={label}
    title={label}
    aria-pressed={pressed}
    disabled={disabled}
    onClick={onClick}
  >
    <Icon name={icon} />
  </button>
)

const SHOWN_TRIES = 4

/** A tab per try, the last few. */
function Tries({ runs, shown, onPick }: { runs: number[]; shown: number | null; onPick: (n: number) => void }) {
  const { t } = useTranslation()
  useKeys({
    '[': () => step(-1),
    ']': () => step(1),
  })
  const step = (by: number): unknown => {
    const next = runs[runs.indexOf(shown ?? -1) + by]
    return next === undefined ? false : onPick(next)
  }
  return (
    <span className="tries" role="tablist" aria-label={t('state.tries')}>
      {runs.slice(-SHOWN_TRIES).map((n) => (
        <button key={n} type="button" role="tab" className="btn small" aria-selected={n === shown} onClick={() => onPick(n)}>
          {t('jobs.tryn', { n })}
        </button>
      ))}
    </span>
  )
}

function LineText({ line, wanted }: { line: Line; wanted: string }) {
  const { t } = useTranslation()
  const long = line.text.length > SHOWN_CHARS
  const text = long ? line.text.slice(0, SHOWN_CHARS) : line.text
  return (
    <>
      {spans(text).map((span, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: spans have no other name
        <span key={i} className={span.look}>
          <Marked text={span.text} wanted={wanted} />
        </span>
      ))}
      {line.folded > 0 && <span className="fold">\r ×{line.folded}</span>}
      {long && <span className="fold">{t('log.cut', { size: size(line.text.length) })}</span>}
      {text === '' && ' '}
    </>
  )
}

function Marked({ text, wanted }: { text: string; wanted: string }) {
  if (!wanted) return text
  const at = text.toLowerCase().indexOf(wanted.toLowerCase())
  if (at < 0) return text
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + wanted.length)}</mark>
      <Marked text={text.slice(at + wanted.length)} wanted={wanted} />
    </>
  )
}
