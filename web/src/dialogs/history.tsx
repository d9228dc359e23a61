// What one card did and who had it: load as a grey area, memory as a line, below a band of its owners.
import { useMemo, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useHistory } from '../api/hooks'
import { SPANS, TimeAxis, useWidth } from '../gpu/timeline'
import { type Bar, bars, curve, sharings, shownFrom } from '../model/timeline'
import { Segmented } from '../parts/controls'
import { BAR, Hatching, SharingLabel, SpanBar } from '../parts/spans'
import { SpanTable } from '../parts/spantable'

const HIGH = 120
const LEFT = 26
const BAND = HIGH + 10

interface HistoryProps {
  uuid: string
  hue: string
  onPick: (bar: Bar) => void
}

export function CardHistoryPanel({ uuid, hue, onPick }: HistoryProps) {
  const { t } = useTranslation()
  const [since, setSince] = useState<(typeof SPANS)[number][0]>('2h')
  const [table, setTable] = useState(false)
  const history = useHistory(since)
  const card = history?.gpus.find((one) => one.uuid === uuid)
  const began = history?.began_at ?? 0
  const now = history?.ended_at ?? 1
  const step = history?.step_s ?? 1
  const skip = history && card ? Math.floor((shownFrom({ ...history, gpus: [card] }, began, now) - began) / step) : 0
  const from = began + skip * step
  const found = useMemo(() => (card ? bars([card], from, now) : []), [card, from, now])
  return (
    <section>
      <h3 className="row">
        {t('card.history')} <span className="t3 grow clip">{history?.error || t('card.historyof')}</span>
        <Segmented
          label={t('timeline.span')}
          value={since}
          choices={SPANS.map(([value]) => ({ value, label: value }))}
          onChange={setSince}
        />
        <button type="button" className="btn small quiet" aria-pressed={table} onClick={() => setTable(!table)}>
          {table ? t('timeline.picture') : t('timeline.table')}
        </button>
      </h3>
      {table ? (
        <SpanTable found={found} onPick={onPick} />
      ) : (
        <Drawing
          load={card?.load.slice(skip) ?? []}
          memory={card?.used_mib.slice(skip).map((mib) => (mib === null ? null : (mib / card.total_mib) * 100)) ?? []}
          {...{ found, from, now, hue, onPick }}
        />
      )}
    </section>
  )
}

interface DrawingProps {
  load: (number | null)[]
  memory: (number | null)[]
  found: Bar[]
  from: number
  now: number
  hue: string
  onPick: (bar: Bar) => void
}

function Drawing({ load, memory, found, from, now, hue, onPick }: DrawingProps) {
  const { t } = useTranslation()
  const [place, width] = useWidth()
  const wide = width - LEFT
  const x = (at: number): number => LEFT + ((at - from) / (now - from)) * wide
  const height = BAND + BAR + 18
  return (
    <div ref={place}>
      <svg className="history" height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={t('card.historyof')}>
        <Hatching people={found.map((bar) => bar.span.user ?? '')} />
        {[0, 50, 100].map((percent) => {
          const y = 4 + HIGH - (percent / 100) * HIGH
          return (
            <g key={percent}>
              <text className="axis" x={LEFT - 6} y={y + 4} textAnchor="end">
                {percent}
              </text>
              <line x1={LEFT} x2={width} y1={y} y2={y} stroke="var(--line)" />
            </g>
          )
        })}
        <g transform={`translate(${LEFT} 4)`}>
          <path className="area" d={curve(load, wide, HIGH).area} />
          <path className="load" d={curve(load, wide, HIGH).line} />
          <path className={`memory hue-${hue}`} d={curve(memory, wide, HIGH).line} />
        </g>
        {found.map((bar) => (
          <SpanBar key={`${bar.lane}.${bar.from}`} bar={bar} x={x} top={BAND} onPick={() => onPick(bar)} />
        ))}
        {sharings(found).map((one) => (
          <SharingLabel key={one.from} one={one} x={x} top={BAND} />
        ))}
        <TimeAxis from={from} now={now} x={x} y={height - 4} />
      </svg>
    </div>
  )
}
