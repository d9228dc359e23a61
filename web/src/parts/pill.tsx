import { useTranslation } from 'react-i18next'
import type { Job } from '../api/types'
import { type Look, lookOf } from '../model/jobs'
import { Icon, type IconName } from './icons'

const LOOKS: Record<Look, [string, IconName]> = {
  running: ['accent', 'play'],
  starting: ['accent', 'ring'],
  queued: ['wait', 'clock'],
  backoff: ['wait', 'again'],
  held: ['', 'pause'],
  stopping: ['', 'stop'],
  succeeded: ['free', 'tick'],
  failed: ['fail', 'cross'],
  cancelled: ['', 'ban'],
  skipped: ['', 'skip'],
}

/** The state of a job: a shape and a word, never colour alone. */
export const Pill = ({ look }: { look: Look }) => <PlainPill look={look} t={useTranslation().t} />

/** The same for lists that are long: to ask for the words in each row takes longer than the row. */
export function PlainPill({ look, t }: { look: Look; t: (key: string) => string }) {
  const [tone, icon] = LOOKS[look]
  return (
    <span className={`pill ${tone}`}>
      <Icon name={icon} size={10} />
      {t(`state.${look}`)}
    </span>
  )
}

export const JobPill = ({ job }: { job: Job }) => <Pill look={lookOf(job)} />
