// What would become of it now, as the engine itself decides: the largest thing in the dialog.
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { post } from '../api/call'
import { useLive } from '../api/hooks'
import type { Against, Reason } from '../api/types'
import { addBody, complete, type NewJob } from '../model/command'
import { Icon } from '../parts/icons'
import { Verdict } from '../parts/verdict'
import { Why } from '../parts/why'
import { useSettled } from './settled'

interface DryRun {
  starts_now: boolean
  gpus: number[]
  reason: Reason | null
  holds: string
  never: string[]
  cards: { index: number; refusal: Against | null }[]
}

const ASK_MS = 3000 // cards change while one types

interface SayingProps {
  look: 'starts' | 'waits' | 'never'
  head: string
  strip?: ReactNode
  children?: ReactNode
}

/** Green where it starts now, amber where it waits; the words say it, too. */
export function Saying({ look, head, strip, children }: SayingProps) {
  return (
    <div className={`dry${look === 'starts' ? '' : ' waits'}`} aria-live="polite">
      <div className="row">
        <h3 className={`row ${look === 'starts' ? 'free' : look === 'never' ? 'fail' : 'wait'}`}>
          <Icon name={look === 'starts' ? 'tick' : look === 'never' ? 'warn' : 'clock'} />
          {head}
        </h3>
        <span className="grow" />
        {strip}
      </div>
      {children}
    </div>
  )
}

export function Outlook({ job, ready }: { job: NewJob; ready: boolean }) {
  const { t } = useTranslation()
  const asked = useSettled(job)
  if (!ready) return <div className="dry blank">{t('new.blank')}</div>
  return <WouldBecome path="/api/v1/add" body={complete(asked) ? addBody(asked) : null} gpus={job.gpus} />
}

interface WouldProps {
  path: string
  body: Record<string, unknown> | null // null: it is not whole yet
  gpus: number
}

export function WouldBecome({ path, body, gpus }: WouldProps) {
  const { t, i18n } = useTranslation()
  const { cards, engine } = useLive('cards', 'engine')
  const { data, error } = useQuery({
    queryKey: ['dry', path, body, i18n.language, engine],
    queryFn: () => post<DryRun>(path, body, { dry_run: true }),
    enabled: body !== null,
    refetchInterval: ASK_MS,
    placeholderData: (last) => last,
    retry: false,
  })
  if (error)
    return (
      <Saying look="waits" head={t('new.cannot')}>
        <p className="t2">{error.message}</p>
      </Saying>
    )
  if (!data) return <div className="dry blank">{t('new.asking')}</div>
  const look = data.starts_now ? 'starts' : data.never.length ? 'never' : 'waits'
  const head = data.gpus.length ? t('new.startson', { gpus: data.gpus.join(', ') }) : t(`new.${look}`)
  const refused = new Map<number, Against | null>(data.cards.map((card) => [card.index, card.refusal]))
  for (const refusal of data.reason?.gpus ?? []) refused.set(refusal.index, refusal)
  const strip = cards && gpus > 0 && refused.size > 0 && (
    <Verdict cards={cards.gpus} refused={refused} taken={new Set(data.gpus)} />
  )
  return (
    <Saying look={look} head={head} strip={strip}>
      <p className="t2">{data.reason ? <Why reason={data.reason} /> : gpus === 0 ? t('new.nogpu') : data.holds}</p>
    </Saying>
  )
}
