// A row per card: own runs solid, others hatched, failures red, now at the right. The same as a table, for those who read tables.
import { useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation } from 'wouter'
import { type Since, useHistory } from '../api/hooks'
import type { CardHistory, Job } from '../api/types'
import { useDesk } from '../desk'
import { clock } from '../model/format'
import { type Bar, bars, type Coming, coming, sharings, shownFrom } from '../model/timeline'
import { Segmented } from '../parts/controls'
import { useNow } from '../parts/now'
import { BAR, Hatching, SharingLabel, SpanBar } from '../parts/spans'
import { SpanTable } from '../parts/spantable'

export const SPANS: [Exclude<Since, '10m'>, number][] = [
  ['2h', 2 * 3600],
  ['24h', 24 * 3600],
  ['7d', 7 * 24 * 3600],
]
const ROW = 16
const DENSE_ROW = 14
const DENSE_FROM = 16
const LEFT = 22
const TICK_PX = 110 // a date and a time beside another

export function Timeline({ jobs }: { jobs: Job[] }) {
  const { t } = useTranslation()
  const [, go] = useLocation()
  const { pick, open } = useDesk()
  const [since, setSince] = useState<(typeof SPANS)[number][0]>('2h')
  const [table, setTable] = useState(false)
  const history = useHistory(since)
  const now = useNow(5000) / 1000 + (history?.ahead ?? 0)
  const cards = history?.gpus ?? []
  const long = SPANS.find(([name]) => name === since)?.[1] ?? 0
  const from = history ? shownFrom(history, now - long, now) : now - long
  const found = useMemo(() => bars(cards, from, now), [cards, from, now])
  const next = useMemo(() => coming(jobs, cards, now), [jobs, cards, now])
  const show = ({ span, row }: Bar): void => {
    if (span.job === null) open({ kind: 'card', index: cards[row]?.index ?? 0 })
    else if (jobs.some((job) => job.id === span.job)) pick(span.job)
    else go(`/state/${span.job}`)
  }
  const left = cards.reduce((sum, card) => sum + card.left_out, 0)
  return (
    <section className="panel timeline" aria-label={t('timeline.title')}>
      <header>
        <h2>{t('timeline.title')}</h2>
        <span className="t3 clip grow" title={t('timeline.legend')}>
          {history?.error || (left ? t('timeline.leftout', { count: left }) : t('timeline.legend'))}
        </span>
        <Segmented
          label={t('timeline.span')}
          value={since}
          choices={SPANS.map(([value]) => ({ value, label: value }))}
          onChange={setSince}
        />
        <button type="button" className="btn small quiet" aria-pressed={table} onClick={() => setTable(!table)}>
          {table ? t('timeline.picture') : t('timeline.table')}
        </button>
      </header>
      {table ? (
        <div className="scroll" style={{ maxHeight: cards.length * ROW + 40, padding: '0 12px' }}>
          <SpanTable found={found} indexOf={(row) => cards[row]?.index} onPick={show} />
        </div>
      ) : (
        <Picture found={found} next={next} cards={cards} from={from} now={now} onPick={show} onPlan={pick} />
      )}
    </section>
  )
}

interface PictureProps {
  found: Bar[]
  next: Coming[]
  cards: CardHistory[]
  from: number
  now: number
  onPick: (bar: Bar) => void
  onPlan: (job: number) => void
}

const AHEAD = 0.43 // of what is shown of the past, where something is to come

function Picture({ found, next, cards, from, now, onPick, onPlan }: PictureProps) {
  const { t } = useTranslation()
  const [place, width] = useWidth()
  const row = cards.length >= DENSE_FROM ? DENSE_ROW : ROW
  const until = next.length ? now + (now - from) * AHEAD : now
  const x = (at: number): number => LEFT + ((Math.min(at, until) - from) / (until - from)) * (width - LEFT - 12)
  const height = cards.length * row + 20
  return (
    <div ref={place}>
      <svg height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={t('timeline.title')}>
        <Hatching people={found.map((bar) => bar.span.user ?? '')} />
        {cards.map((card, i) => (
          <g key={card.uuid}>
            <text className="axis" x={8} y={i * row + 13}>
              {card.index}
            </text>
            <line x1={LEFT} x2={width - 12} y1={(i + 1) * row + 1} y2={(i + 1) * row + 1} stroke="var(--line)" />
          </g>
        ))}
        {found.map((bar) => (
          <SpanBar
            key={`${bar.row}.${bar.lane}.${bar.from}`}
            bar={bar}
            x={x}
            top={bar.row * row + (row - BAR) / 2 + 1}
            onPick={() => onPick(bar)}
          />
        ))}
        {sharings(found).map((one) => (
          <SharingLabel key={`${one.row}.${one.from}`} one={one} x={x} top={one.row * row + (row - BAR) / 2 + 1} />
        ))}
        {next
          .filter((one) => one.from < until)
          .map((one) => (
            <ComingBar
              key={`${one.job.id}.${one.row}`}
              one={one}
              x={x}
              until={until}
              top={one.row * row + (row - BAR) / 2 + 1}
              onPick={() => onPlan(one.job.id)}
            />
          ))}
        <TimeAxis from={from} now={now} x={x} y={height - 4} />
        <line x1={x(now)} x2={x(now)} y1={0} y2={height - 18} stroke="var(--t1)" strokeWidth={1.5} />
      </svg>
    </div>
  )
}

interface ComingProps {
  one: Coming
  x: (at: number) => number
  until: number
  top: number
  onPick: () => void
}

/** The rest of a run as a faint bar, a planned start as a dashed outline, open where no end is known. */
function ComingBar({ one, x, until, top, onPick }: ComingProps) {
  const { t } = useTranslation()
  const left = x(one.from)
  const wide = Math.max(2, x(one.to ?? until) - left)
  const name = `#${one.job.id} ${one.job.name}`
  const at = clock((one.planned ? one.from : (one.to ?? 0)) * 1000)
  const open = `M${left + wide} ${top}H${left}V${top + BAR}H${left + wide}`
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the list of jobs has the same by keyboard
    <g className={`span ${one.planned ? 'planned' : 'rest'}`} onClick={onPick}>
      <title>{`${name} · ${t(one.planned ? 'timeline.starts' : 'timeline.ends', { at })}`}</title>
      {one.planned ? <path d={open} /> : <rect x={left} y={top} width={wide} height={BAR} rx={2} />}
      {one.planned && wide > 30 && (
        <text x={left + 4} y={top + 9.5}>
          #{one.job.id}
        </text>
      )}
    </g>
  )
}

export function TimeAxis({ from, now, x, y }: { from: number; now: number; x: (at: number) => number; y: number }) {
  const { t } = useTranslation()
  const ticks = x(now) - x(from) < 4 * TICK_PX ? 2 : 4
  return Array.from({ length: ticks + 1 }, (_, i) => {
    const at = from + ((now - from) * i) / ticks
    const last = i === ticks
    return (
      <text key={at} className="axis" x={x(at)} y={y} textAnchor={i === 0 ? 'start' : last ? 'end' : 'middle'}>
        {last ? t('timeline.now') : clock(at * 1000, now * 1000)}
      </text>
    )
  })
}

/** A place to draw in, and how wide it is. */
export function useWidth(): [React.RefObject<HTMLDivElement | null>, number] {
  const place = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(480)
  useEffect(() => {
    const div = place.current
    if (!div) return
    const watch = new ResizeObserver(() => setWidth(div.clientWidth))
    watch.observe(div)
    return () => watch.disconnect()
  }, [])
  return [place, width]
}
