// A job that waits, changed where it stands.
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useActs } from '../api/acts'
import type { Job } from '../api/types'
import { setCommand } from '../model/command'
import { Command } from '../parts/controls'
import { Dialog } from '../parts/dialog'

const KEYS = ['name', 'priority', 'memory', 'time_limit', 'queue'] as const
type Key = (typeof KEYS)[number]

const HINTS: Partial<Record<Key, string>> = { memory: '20GiB', time_limit: '2h30m' }

/** As `jostle set` takes them; what is empty is at its default. */
const present = (job: Job): Record<Key, string> => ({
  name: job.name,
  priority: String(job.priority),
  memory: job.memory_mib === null ? '' : `${job.memory_mib}MiB`,
  time_limit: job.time_limit === null ? '' : `${job.time_limit}s`,
  queue: job.queue ?? '',
})

export default function ChangeDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const { t } = useTranslation()
  const { set } = useActs()
  const [before] = useState(present(job))
  const [values, setValues] = useState(before)
  const changed = Object.fromEntries(
    KEYS.filter((key) => values[key].trim() !== before[key]).map((key) => [key, values[key].trim() || 'none']),
  )
  const none = Object.keys(changed).length === 0
  return (
    <Dialog
      title={t('change.title', { id: job.id })}
      onClose={onClose}
      footer={
        <>
          <span className="grow">{!none && <Command text={setCommand(job.id, changed)} />}</span>
          <button type="button" className="btn" onClick={onClose}>
            {t('control.cancel')} <kbd>Esc</kbd>
          </button>
          <button
            type="button"
            className="btn primary"
            disabled={none}
            onClick={() => {
              void set(job.id, changed)
              onClose()
            }}
          >
            {t('change.do')}
          </button>
        </>
      }
    >
      <div className="formrow">
        {KEYS.map((key) => (
          <div key={key} style={{ display: 'contents' }}>
            <label htmlFor={`change-${key}`}>{t(`change.${key}`)}</label>
            <span className="field">
              <input
                id={`change-${key}`}
                data-first={key === 'priority' || undefined}
                className="mono"
                placeholder={HINTS[key]}
                value={values[key]}
                onChange={(event) => setValues({ ...values, [key]: event.target.value })}
              />
            </span>
          </div>
        ))}
      </div>
      <p className="t2">{t('change.how')}</p>
    </Dialog>
  )
}
