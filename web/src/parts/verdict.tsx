import type { Against, Card } from '../api/types'
import { hueOf, ownNames, shares } from '../model/people'

interface VerdictProps {
  cards: Card[]
  refused: Map<number, Against | null>
  taken?: ReadonlySet<number> // those that it would get
}

/** A tile per card: filled would be taken, ringed fits, else in the colour of whoever has it; its title says the refusal. */
export function Verdict({ cards, refused, taken }: VerdictProps) {
  const own = ownNames(cards)
  return (
    <span className="verdict">
      {cards.map((card) => {
        const against = refused.get(card.index)
        const owner = shares(card, own)[0]?.person
        const fits = refused.has(card.index) ? !against : card.refusal === null && card.state === 'ok'
        return (
          <i
            key={card.uuid}
            className={taken?.has(card.index) ? 'taken' : fits ? 'fits' : `hue-${owner === undefined ? 'none' : hueOf(owner)}`}
            title={against?.text ?? against?.code ?? ''}
          >
            {card.index}
          </i>
        )
      })}
    </span>
  )
}
