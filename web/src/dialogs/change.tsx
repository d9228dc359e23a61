// A job that waits, changed where it stands; of one that runs and agreed to it, how many cards it has.
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useActs } from '../api/acts'
import type { Job } from '../api/types'
import { setCommand } from '../model/command'
import { resizable } from '../model/jobs'
import { Command } from '../parts/controls'
import { Dialog } from '../parts/dialog'

const KEYS = ['name', 'gpus', 'priority', 'memory', 'cpus', 'host_memory', 'time_limit', 'queue'] as const
type Key = (typeof KEYS)[number]

const HINTS: Partial<Record<Key, string>> = { gpus: '1-4', memory: '20GiB', cpus: '8', host_memory: '64GiB', time_limit: '2h30m' }

/** As `jostle set` takes them; what is empty is at its default. */
const present = (job: Job): Record<Key, string> => ({
  name: job.name,
  gpus: [...new Set(job.gpu_request)].join('-'),
  priority: String(job.priority),
  memory: job.memory_mib === null ? '' : `${job.memory_mib}MiB`,
  cpus: job.cpus === null ? '' : String(job.cpus),
  host_memory: job.host_memory_mib === null ? '' : `${job.host_memory_mib}MiB`,
  time_limit: job.time_limit === null ? '' : `${job.time_limit}s`,
  queue: job.queue ?? '',
})

export default function ChangeDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const { t } = useTranslation()
  const { set } = useActs()
  const [before] = useState(present(job))
  const [values, setValues] = useState(before)
  const runs = resizable(job)
  const keys = runs ? (['gpus'] as const) : KEYS
  const changed = Object.fromEntries(
    keys.filter((key) => values[key].trim() !== before[key]).map((key) => [key, values[key].trim() || 'none']),
  )
  const none = Object.keys(changed).length === 0
  return (
    <Dialog
      title={t(runs ? 'change.resizetitle' : 'change.title', { id: job.id })}
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
        {keys.map((key) => (
          <div key={key} style={{ display: 'contents' }}>
            <label htmlFor={`change-${key}`}>{t(`change.${key}`)}</label>
            <span className="field">
              <input
                id={`change-${key}`}
                data-first={key === (runs ? 'gpus' : 'priority') || undefined}
                className="mono"
                placeholder={HINTS[key]}
                value={values[key]}
                onChange={(event) => setValues({ ...values, [key]: event.target.value })}
              />
            </span>
          </div>
        ))}
      </div>
      <p className="t2">{t(runs ? 'change.resizehow' : 'change.how', { how: job.resize })}</p>
    </Dialog>
  )
}
