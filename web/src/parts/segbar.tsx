import { useTranslation } from 'react-i18next'
import { type Progress, segments } from '../model/sweeps'

const LOOKS = ['before', 'done', 'failed', 'running', 'waiting', 'dropped'] as const

/** How far many jobs are, in words. */
export function useSaid(count: Progress): string {
  const { t } = useTranslation()
  return LOOKS.filter((look) => (count[look] ?? 0) > 0)
    .map((look) => t(`progress.${look}`, { count: count[look] }))
    .join(' · ')
}

/** A segment for each of many jobs; who cannot see it hears the words. */
export function Segments({ count }: { count: Progress }) {
  const said = useSaid(count)
  return (
    <span className="segbar" role="img" aria-label={said} title={said}>
      {segments(count).map((one, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: segments have no other name
        <i key={i} className={one.look} style={{ flexGrow: one.share }} />
      ))}
    </span>
  )
}

/** How far many jobs are: a segment for each, and the same in words. */
export function SegBar({ count }: { count: Progress }) {
  return (
    <span className="progress">
      <Segments count={count} />
      <span className="t2">{useSaid(count)}</span>
    </span>
  )
}
