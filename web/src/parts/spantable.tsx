import { useTranslation } from 'react-i18next'
import { clock, span as long } from '../model/format'
import { type Bar, isOwn } from '../model/timeline'
import { whose } from './spans'

const MOST_ROWS = 200

interface TableProps {
  found: Bar[]
  indexOf?: (row: number) => number | undefined // of its card, where there are several
  onPick: (bar: Bar) => void
}

/** The same as the bars, for those who read tables: the latest first. */
export function SpanTable({ found, indexOf, onPick }: TableProps) {
  const { t } = useTranslation()
  const rows = found
    .filter((bar) => !bar.idle || bar.from === bar.span.began_at)
    .sort((a, b) => b.span.began_at - a.span.began_at)
    .slice(0, MOST_ROWS)
  return (
    <table className="list">
      <thead>
        <tr>
          {indexOf && <th>GPU</th>}
          <th>{t('timeline.who')}</th>
          <th>{t('timeline.from')}</th>
          <th className="num">{t('timeline.long')}</th>
          <th>{t('timeline.state')}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((bar) => {
          const { span } = bar
          return (
            <tr key={`${bar.row}.${span.job ?? span.user}.${span.run ?? span.pid}.${span.began_at}`}>
              {indexOf && <td>{indexOf(bar.row)}</td>}
              <td>
                <button type="button" className="link" onClick={() => onPick(bar)}>
                  {whose(span, t('people.hidden'))}
                </button>
              </td>
              <td>{clock(span.began_at * 1000)}</td>
              <td className="num">{long((span.ended_at ?? Date.now() / 1000) - span.began_at)}</td>
              <td>
                {isOwn(span)
                  ? t(`state.${span.outcome === 'lost' ? 'failed' : (span.outcome ?? 'running')}`)
                  : span.ended_at === null
                    ? t('timeline.there')
                    : t('timeline.gone')}
              </td>
            </tr>
          )
        })}
      </tbody>
    </table>
  )
}
