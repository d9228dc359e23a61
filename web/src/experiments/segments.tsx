import { type Part, segments } from './model'

/** A segment per job, above 60 of them parts of the whole. */
export function Segments({ of, label, small }: { of: Part[]; label: string; small?: boolean }) {
  return (
    <div className={`segbar${small ? ' small' : ''}`} role="img" aria-label={label} title={label}>
      {segments(of).map((part, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: segments have no other name
        <i key={i} className={part.tone} style={part.n > 1 ? { flexGrow: part.n } : undefined} />
      ))}
    </div>
  )
}
