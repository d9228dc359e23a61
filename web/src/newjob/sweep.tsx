// A sweep: one command with names in braces, and the values of each. It becomes a job file, so that it can be run again.
import { useTranslation } from 'react-i18next'
import { useBounds } from '../api/hooks'
import { type JobFile, useJobFiles } from '../experiments/jobfile'
import type { NewSweep } from '../model/sweepfile'
import { Command, Stepper } from '../parts/controls'
import { BatchOutlook } from './batch'

interface SweepProps {
  sweep: NewSweep
  file: JobFile
  ready: boolean
  set: (next: Partial<NewSweep>) => void
}

export function SweepForm({ sweep, file, ready, set }: SweepProps) {
  const { t } = useTranslation()
  const bounds = useBounds('gpus')
  const folders = useJobFiles().data?.folders
  if (folders?.length === 0)
    return (
      <div className="dry blank">
        <p>{t('new.nofolder')}</p>
        <Command text="jostle run sweep.yaml" />
      </div>
    )
  return (
    <>
      <div className="formrow">
        <label htmlFor="sweep-command">{t('new.command')}</label>
        <textarea
          id="sweep-command"
          className="text"
          rows={2}
          data-first
          spellCheck={false}
          placeholder="python train.py --lr {lr} --seed {seed}"
          value={sweep.command}
          onChange={(event) => set({ command: event.target.value })}
        />
        <label htmlFor="sweep-axes">{t('new.axes')}</label>
        <textarea
          id="sweep-axes"
          className="text"
          rows={3}
          spellCheck={false}
          placeholder={'lr: 1e-4, 3e-4\nseed: 1, 2, 3'}
          value={sweep.axes}
          onChange={(event) => set({ axes: event.target.value })}
        />
        <label htmlFor="sweep-name">{t('new.sweepname')}</label>
        <span className="row" style={{ flexWrap: 'wrap' }}>
          <span className="field">
            <input
              id="sweep-name"
              placeholder="sweep"
              value={sweep.name}
              onChange={(event) => set({ name: event.target.value })}
            />
          </span>
          <label className="t2" htmlFor="sweep-folder">
            {t('new.in')}
          </label>
          <span className="field grow">
            <select
              id="sweep-folder"
              className="mono"
              value={sweep.folder || folders?.[0]}
              onChange={(event) => set({ folder: event.target.value })}
            >
              {folders?.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          </span>
        </span>
        <span>GPU</span>
        <span className="row" style={{ flexWrap: 'wrap' }}>
          <Stepper label="GPU" value={sweep.gpus} {...bounds} onChange={(gpus) => set({ gpus: gpus ?? 0 })} />
          <label className="t2" htmlFor="sweep-memory">
            {t('new.memory')}
          </label>
          <span className="field" style={{ width: 120 }}>
            <input
              id="sweep-memory"
              inputMode="decimal"
              placeholder={t('new.whole')}
              value={sweep.memory}
              onChange={(event) => set({ memory: event.target.value.trim() })}
            />
            <span className="t3">GiB</span>
          </span>
        </span>
      </div>
      {!ready ? (
        <div className="dry blank">{t('new.sweepblank')}</div>
      ) : file.exists ? (
        <div className="dry waits">{t('new.exists')}</div>
      ) : (
        <BatchOutlook file={file} />
      )}
    </>
  )
}
