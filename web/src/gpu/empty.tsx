import { useTranslation } from 'react-i18next'
import type { Card } from '../api/types'
import { isFree, ownNames } from '../model/people'
import { Command } from '../parts/controls'

const COMMANDS = ['jostle add -g 1 -m 20GiB -- python train.py', 'jostle run sweep.yaml', 'jostle compete']

/** Nothing queued yet: what is true, and three commands to begin with. */
export function Empty({ cards }: { cards: Card[] }) {
  const { t } = useTranslation()
  const own = ownNames(cards)
  const free = cards.filter((card) => isFree(card, own)).length
  return (
    <section className="panel empty">
      <h2>{free === cards.length && free > 0 ? t('empty.allfree', { count: free }) : t('empty.title', { count: free })}</h2>
      <p className="t2">{t('empty.how')}</p>
      <ol>
        {COMMANDS.map((command, i) => (
          <li key={command}>
            <span className="n">{i + 1}</span>
            <span>
              <b className="strong">{t(`empty.head${i + 1}`)}</b>
              <br />
              <span className="t2">{t(`empty.text${i + 1}`)}</span>
            </span>
            <Command text={command} />
          </li>
        ))}
      </ol>
    </section>
  )
}
