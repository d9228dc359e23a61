// Spans of time on a card as bars of a drawing: own runs solid, others hatched in their colour, failures red, idle dotted.
import { useTranslation } from 'react-i18next'
import type { Span } from '../api/types'
import { clock, span as long } from '../model/format'
import { hueOf } from '../model/people'
import { type Bar, isOwn, type Sharing } from '../model/timeline'

export const BAR = 12
const CHAR = 6 // px, about

export const whose = (span: Span, hidden: string): string =>
  isOwn(span) ? `#${span.job}${span.name ? ` ${span.name}` : ''}` : span.user || hidden

function look({ span, idle }: Bar): string {
  if (idle) return `idle hue-${hueOf(span.user ?? '')}`
  if (!isOwn(span)) return `other hue-${hueOf(span.user ?? '')}`
  if (span.ended_at === null) return 'own'
  if (span.outcome === 'failed' || span.outcome === 'lost') return 'bad'
  return span.outcome === 'cancelled' ? 'dropped' : 'own past'
}

interface SpanBarProps {
  bar: Bar
  x: (at: number) => number
  top: number
  onPick: () => void
}

export function SpanBar({ bar, x, top, onPick }: SpanBarProps) {
  const { t } = useTranslation()
  const { span, lane, lanes } = bar
  const high = BAR / lanes
  const y = top + lane * high
  const wide = Math.max(2, x(bar.to) - x(bar.from))
  const name = whose(span, t('people.hidden'))
  const style = look(bar)
  const room = Math.floor((wide - 8) / CHAR)
  const shown = name.length > room ? `${name.slice(0, Math.max(0, room - 1))}…` : name
  const said = [
    name,
    isOwn(span) ? t(`state.${span.outcome === 'lost' ? 'failed' : (span.outcome ?? 'running')}`) : '',
    `${clock(span.began_at * 1000)}–${span.ended_at === null ? t('timeline.now') : clock(span.ended_at * 1000)}`,
    long((span.ended_at ?? Date.now() / 1000) - span.began_at),
    bar.idle ? t('timeline.idle') : '',
  ]
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the table has the same by keyboard
    <g className={`span ${style}`} onClick={onPick}>
      <title>{said.filter(Boolean).join(' · ')}</title>
      <rect
        x={x(bar.from)}
        y={y}
        width={wide}
        height={Math.max(2, high - (lanes > 1 ? 1 : 0))}
        rx={2}
        fill={isOwn(span) || bar.idle ? undefined : `url(#hatch-${hueOf(span.user ?? '')})`}
      />
      {lanes === 1 && !bar.idle && room > 2 && (
        <>
          {!isOwn(span) && <rect className="plate" x={x(bar.from)} y={y} width={shown.length * CHAR + 6} height={BAR} />}
          <text x={x(bar.from) + 4} y={y + 9.5}>
            {shown}
          </text>
        </>
      )}
    </g>
  )
}

/** `#105 +2 vit-b16 · alice`: who shares a card, on a plate, as their bars are too low for words. */
export function SharingLabel({ one, x, top }: { one: Sharing; x: (at: number) => number; top: number }) {
  const { t } = useTranslation()
  const [first, ...more] = one.jobs
  const own = first === undefined ? '' : `#${first}${more.length ? ` +${more.length}` : ''} ${one.name}`.trim()
  const whole = [own, ...one.users.map((user) => user || t('people.hidden'))].filter(Boolean).join(' · ')
  const room = Math.floor((x(one.to) - x(one.from) - 8) / CHAR)
  if (room < 4) return null
  const shown = whole.length > room ? `${whole.slice(0, room - 1)}…` : whole
  const hue = one.look === 'other' ? ` hue-${hueOf(one.users[0] ?? '')}` : ''
  return (
    <g className={`span sharing ${one.look}${hue}`} pointerEvents="none">
      <rect x={x(one.from)} y={top} width={shown.length * CHAR + 6} height={BAR} rx={2} />
      <text x={x(one.from) + 4} y={top + 9.5}>
        {shown}
      </text>
    </g>
  )
}

/** The hatching that others' bars are filled with, in each colour. */
export const Hatching = ({ people }: { people: readonly string[] }) => (
  <defs>
    {[...new Set(people.map(hueOf))].map((hue) => (
      <pattern
        key={hue}
        id={`hatch-${hue}`}
        className={`hue-${hue}`}
        width="5"
        height="5"
        patternUnits="userSpaceOnUse"
        patternTransform="rotate(45)"
      >
        <rect className="ground" width="5" height="5" />
        <rect className="stripe" width="2" height="5" />
      </pattern>
    ))}
  </defs>
)
