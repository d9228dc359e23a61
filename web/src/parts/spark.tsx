import { curve } from '../model/timeline'

const HEIGHT = 16

/** Load of the last ten minutes, 0 to 100 fixed; where it could not be read there is a gap. Of a card that cannot be read now nothing is drawn but a dashed line. */
export function Spark({ load, hue, unknown }: { load: readonly (number | null)[]; hue: string; unknown?: boolean }) {
  const { line, area } = curve(load, 100, HEIGHT)
  return (
    <svg className={`spark hue-${hue}`} viewBox={`0 -1 100 ${HEIGHT + 2}`} preserveAspectRatio="none" aria-hidden="true">
      <path className="a" d={area} />
      <path className={unknown ? 'l unknown' : 'l'} d={unknown ? `M0 ${HEIGHT}H100` : line} />
    </svg>
  )
}
