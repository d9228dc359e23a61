import { useTranslation } from 'react-i18next'
import { type Progress, segments } from '../model/sweeps'

/** How far many jobs are: a segment for each, and the same in words. */
export function SegBar({ count }: { count: Progress }) {
  const { t } = useTranslation()
  const said = (['done', 'failed', 'running', 'waiting', 'dropped'] as const)
    .filter((look) => count[look] > 0)
    .map((look) => t(`progress.${look}`, { count: count[look] }))
  return (
    <span className="progress">
      <span className="segbar" aria-hidden="true">
        {segments(count).map((one, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: segments have no other name
          <i key={i} className={one.look} style={{ flexGrow: one.share }} />
        ))}
      </span>
      <span className="t2">{said.join(' · ')}</span>
    </span>
  )
}
