import { curve } from '../model/timeline'

const HEIGHT = 16

/** Load of the last ten minutes, 0 to 100 fixed; where it could not be read there is a gap. */
export function Spark({ load, hue }: { load: readonly (number | null)[]; hue: string }) {
  const { line, area } = curve(load, 100, HEIGHT)
  return (
    <svg className={`spark hue-${hue}`} viewBox={`0 -1 100 ${HEIGHT + 2}`} preserveAspectRatio="none" aria-hidden="true">
      <path className="a" d={area} />
      <path className="l" d={line} />
    </svg>
  )
}
