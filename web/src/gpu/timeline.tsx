// A row per card: own runs solid, failures red, now at the right. The same as a table, for those who read tables.
import { useEffect, useMemo, useRef, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { live } from '../api/live'
import type { Card, Job } from '../api/types'
import { useDesk } from '../desk'
import { clock, span } from '../model/format'
import { ACTIVE, elapsed } from '../model/jobs'
import { hueOf } from '../model/people'
import { type Bar, bars, others } from '../model/timeline'
import { Segmented } from '../parts/controls'
import { useNow } from '../parts/now'

const SPANS = { '2h': 2 * 3600, '24h': 24 * 3600, '7d': 7 * 24 * 3600 } as const
type Span = keyof typeof SPANS
const ROW = 16
const BAR = 12
const LEFT = 22
const TICKS = 4

export function Timeline({ jobs, cards }: { jobs: Job[]; cards: Card[] }) {
  const { t } = useTranslation()
  const [spanOf, setSpan] = useState<Span>('2h')
  const [table, setTable] = useState(false)
  const now = useNow(5000) / 1000
  const from = now - SPANS[spanOf]
  const found = useMemo(() => bars(jobs, cards, from, now), [jobs, cards, from, now])
  return (
    <section className="panel timeline" aria-label={t('timeline.title')}>
      <header>
        <h2>{t('timeline.title')}</h2>
        <span className="t3 clip grow" title={t('timeline.others')}>
          {t('timeline.legend')}
        </span>
        <Segmented
          label={t('timeline.span')}
          value={spanOf}
          choices={(Object.keys(SPANS) as Span[]).map((value) => ({ value, label: value }))}
          onChange={setSpan}
        />
        <button type="button" className="btn small quiet" aria-pressed={table} onClick={() => setTable(!table)}>
          {table ? t('timeline.picture') : t('timeline.table')}
        </button>
      </header>
      {table ? <Table found={found} cards={cards} /> : <Picture found={found} cards={cards} from={from} now={now} />}
    </section>
  )
}

function tone(job: Job): [string, number] {
  if (job.state === 'failed') return ['var(--fail-solid)', 1]
  if (ACTIVE.has(job.state)) return ['var(--accent-solid)', 1]
  if (job.state === 'cancelled') return ['var(--b-none)', 0.6]
  return ['var(--accent-solid)', 0.55]
}

function Picture({ found, cards, from, now }: { found: Bar[]; cards: Card[]; from: number; now: number }) {
  const { t } = useTranslation()
  const { pick } = useDesk()
  const place = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(480)
  useEffect(() => {
    const div = place.current
    if (!div) return
    const watch = new ResizeObserver(() => setWidth(div.clientWidth))
    watch.observe(div)
    return () => watch.disconnect()
  }, [])
  const inner = width - LEFT - 12
  const x = (at: number): number => LEFT + ((at - from) / (now - from)) * inner
  const height = cards.length * ROW + 20
  return (
    <div ref={place}>
      <svg height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={t('timeline.title')}>
        {cards.map((card, i) => (
          <g key={card.uuid}>
            <text className="axis" x={8} y={i * ROW + 13}>
              {card.index}
            </text>
            <line x1={LEFT} x2={width - 12} y1={i * ROW + ROW + 2} y2={i * ROW + ROW + 2} stroke="var(--line)" />
          </g>
        ))}
        {Array.from({ length: TICKS + 1 }, (_, i) => {
          const at = from + ((now - from) * i) / TICKS
          return (
            <text
              key={at}
              className="axis"
              x={x(at)}
              y={height - 4}
              textAnchor={i === 0 ? 'start' : i === TICKS ? 'end' : 'middle'}
            >
              {i === TICKS ? t('timeline.now') : clock(at * 1000, now * 1000)}
            </text>
          )
        })}
        <defs>
          <pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <rect width="2" height="5" fill="#fff" />
          </pattern>
          <mask id="hatched">
            <rect width="100%" height="100%" fill="url(#hatch)" />
          </mask>
        </defs>
        <g mask="url(#hatched)">
          {others(live.samples, cards, from).map((other) => (
            <rect
              key={`${other.row}.${other.from}`}
              className={`hue-${hueOf(other.person)} other`}
              x={x(other.from)}
              y={other.row * ROW + 3}
              width={Math.max(2, x(other.to) - x(other.from))}
              height={BAR}
              rx={2}
            >
              <title>{`${other.person || t('people.hidden')} · ${clock(other.from * 1000)} · ${span(other.to - other.from)}`}</title>
            </rect>
          ))}
        </g>
        {found.map((bar) => {
          const [fill, opacity] = tone(bar.job)
          const wide = Math.max(2, x(bar.to) - x(bar.from))
          const label = `#${bar.job.id} ${bar.job.name}`
          return (
            // biome-ignore lint/a11y/noStaticElementInteractions: the table has the same by keyboard
            <g key={`${bar.job.id}.${bar.row}`} onClick={() => pick(bar.job.id)} cursor="pointer">
              <title>{`${label} · ${t(`state.${bar.job.state}`)} · ${clock(bar.from * 1000)} · ${span(bar.to - bar.from)}`}</title>
              <rect x={x(bar.from)} y={bar.row * ROW + 3} width={wide} height={BAR} rx={2} fill={fill} opacity={opacity} />
              {wide > 34 && (
                <text className="lab" x={x(bar.from) + 4} y={bar.row * ROW + 13}>
                  {label.length * 6 > wide - 8 ? `${label.slice(0, Math.max(2, Math.floor((wide - 14) / 6)))}…` : label}
                </text>
              )}
            </g>
          )
        })}
        <line x1={x(now)} x2={x(now)} y1={0} y2={height - 18} stroke="var(--t1)" strokeWidth={1.5} />
      </svg>
    </div>
  )
}

const MOST_ROWS = 100

function Table({ found, cards }: { found: Bar[]; cards: Card[] }) {
  const { t } = useTranslation()
  const { pick } = useDesk()
  const rows = [...found].sort((a, b) => b.from - a.from).slice(0, MOST_ROWS)
  return (
    <div className="scroll" style={{ maxHeight: cards.length * ROW + 40, padding: '0 12px' }}>
      <table className="list">
        <thead>
          <tr>
            <th>GPU</th>
            <th>{t('jobs.title')}</th>
            <th>{t('timeline.from')}</th>
            <th className="num">{t('timeline.long')}</th>
            <th>{t('timeline.state')}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((bar) => (
            <tr key={`${bar.job.id}.${bar.row}`}>
              <td>{cards[bar.row]?.index}</td>
              <td>
                <button type="button" className="link" onClick={() => pick(bar.job.id)}>
                  #{bar.job.id} {bar.job.name}
                </button>
              </td>
              <td>{clock(bar.from * 1000)}</td>
              <td className="num">{span(elapsed(bar.job, Date.now()) ?? 0)}</td>
              <td>{t(`state.${bar.job.state}`)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
