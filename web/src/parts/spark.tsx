import type { Sample } from '../api/live'

const SPAN_MS = 10 * 60_000
const HEIGHT = 18

/** Load of the last ten minutes as far as this tab has seen it, 0 to 100 fixed; where it could not be read there is a gap. */
export function sparkPaths(samples: readonly Sample[], now: number): { line: string; area: string } {
  let line = ''
  let area = ''
  let open: { x: number } | null = null
  let last = 0
  for (const sample of samples) {
    const x = Math.max(0, 100 - ((now - sample.at) / SPAN_MS) * 100)
    if (sample.load === null) {
      if (open) area += `L${last.toFixed(2)} ${HEIGHT}Z`
      open = null
      continue
    }
    const y = HEIGHT - 1 - (sample.load / 100) * (HEIGHT - 3)
    const point = `${x.toFixed(2)} ${y.toFixed(1)}`
    line += open ? `L${point}` : `M${point}`
    area += open ? `L${point}` : `M${x.toFixed(2)} ${HEIGHT}L${point}`
    open ??= { x }
    last = x
  }
  if (open) area += `L${last.toFixed(2)} ${HEIGHT}Z`
  return { line, area }
}

export function Spark({ samples, now, hue }: { samples: readonly Sample[]; now: number; hue: string }) {
  const { line, area } = sparkPaths(samples, now)
  return (
    <svg className={`spark hue-${hue}`} viewBox={`0 0 100 ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <path className="a" d={area} />
      <path className="l" d={line} />
    </svg>
  )
}
