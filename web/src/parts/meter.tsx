import type { ReactNode } from 'react'

export interface Part {
  hue: string
  share: number // 0 to 1
}

interface MeterProps {
  label: string
  parts: Part[]
  text: string
  unknown?: boolean
  thin?: boolean
}

/** A bar with a segment per holder. What cannot be read is hatched, never zero. */
export function Meter({ label, parts, text, unknown, thin }: MeterProps) {
  const value = Math.round(parts.reduce((sum, part) => sum + part.share, 0) * 100)
  return (
    // biome-ignore lint/a11y/useSemanticElements: a native meter cannot have a segment per holder
    <div
      className={`meter${thin ? ' thin' : ''}${unknown ? ' hatched' : ''}`}
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={unknown ? undefined : Math.min(100, value)}
      aria-valuetext={text}
    >
      {!unknown &&
        parts.map((part) => (
          <i key={part.hue} className={`hue-${part.hue}`} style={{ width: `${Math.min(100, part.share * 100)}%` }} />
        ))}
    </div>
  )
}

interface MeasureProps extends MeterProps {
  short: string
  figure: ReactNode
  className?: string
}

export const Measure = ({ short, figure, className = '', ...meter }: MeasureProps) => (
  <div className={`measure ${className}`}>
    <span className="label">{short}</span>
    <Meter {...meter} />
    <span className="figure">{figure}</span>
  </div>
)
