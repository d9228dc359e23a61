// How much memory a try used over its time, beside what its card has.
import { useTranslation } from 'react-i18next'
import type { Run } from '../api/types'
import { clock, gib } from '../model/format'
import { curve } from '../model/timeline'

const WIDE = 236
const HIGH = 60

export function MemoryCurve({ run }: { run: Run }) {
  const { t } = useTranslation()
  const told = run.profile?.curve
  if (!told || told.mib.every((mib) => mib === null)) return null
  const most = Math.max(...told.mib.map((mib) => mib ?? 0))
  const card = run.profile?.gpu_mib ?? null
  const top = Math.max(most, card ?? 0) * 1.08 || 1
  const share = (mib: number | null): number | null => (mib === null ? null : (mib / top) * 100)
  const { line, area } = curve(told.mib.map(share), WIDE, HIGH)
  const limit = card === null ? null : HIGH - (card / top) * HIGH
  const died = run.outcome === 'failed' || run.outcome === 'lost'
  const last = told.mib.findLastIndex((mib) => mib !== null)
  const x = Math.min(WIDE - 3, ((last + 1) / told.mib.length) * WIDE)
  const y = HIGH - ((share(told.mib[last] ?? 0) ?? 0) / 100) * HIGH
  const ended = run.ended_at === null ? t('timeline.now') : clock(run.ended_at * 1000)
  return (
    <section>
      <h3 className="row">
        <span className="grow">{t('story.memoryof', { n: run.n })}</span>
        {card !== null && <span className="memorylimit">{t('story.card', { gib: gib(card) })}</span>}
      </h3>
      <svg
        className="memorycurve"
        viewBox={`0 0 ${WIDE} ${HIGH + 16}`}
        role="img"
        aria-label={t('story.memorysaid', { n: run.n, most: gib(most), card: card === null ? '–' : gib(card) })}
      >
        {limit !== null && <line className="limit" x1={0} x2={WIDE} y1={limit} y2={limit} />}
        <path className="area" d={area} />
        <path className="line" d={line} />
        {died && <circle cx={x} cy={y} r={3} />}
        <text className="axis" x={0} y={HIGH + 13}>
          {clock(run.started_at * 1000)}
        </text>
        <text className="axis" x={WIDE} y={HIGH + 13} textAnchor="end">
          {died ? t('story.died', { at: ended }) : ended}
        </text>
      </svg>
    </section>
  )
}
