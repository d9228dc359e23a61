// One command: what it needs, and where it runs.
import { useTranslation } from 'react-i18next'
import { useBounds } from '../api/hooks'
import type { NewJob } from '../model/command'
import { Stepper, Switch } from '../parts/controls'

export function CommandForm({ job, set }: { job: NewJob; set: (next: Partial<NewJob>) => void }) {
  const { t } = useTranslation()
  const [cards, tries] = [useBounds('gpus'), useBounds('retry')]
  return (
    <div className="formrow">
      <label htmlFor="new-command">{t('new.command')}</label>
      <textarea
        id="new-command"
        className="text"
        rows={3}
        data-first
        spellCheck={false}
        placeholder="python train.py --seed 1"
        value={job.command}
        onChange={(event) => set({ command: event.target.value })}
      />
      <label htmlFor="new-workdir">{t('new.workdir')}</label>
      <span className="field">
        <input
          id="new-workdir"
          className="mono"
          spellCheck={false}
          placeholder="/home/…"
          value={job.workdir}
          onChange={(event) => set({ workdir: event.target.value })}
        />
      </span>
      <label htmlFor="new-name">{t('new.name')}</label>
      <span className="field">
        <input
          id="new-name"
          placeholder={job.command.slice(0, 60)}
          value={job.name}
          onChange={(event) => set({ name: event.target.value })}
        />
      </span>
      <span>GPU</span>
      <span className="row" style={{ flexWrap: 'wrap' }}>
        <Stepper label="GPU" value={job.gpus} {...cards} onChange={(gpus) => set({ gpus: gpus ?? 0 })} />
        <span className="row">
          <label className="t2" htmlFor="new-memory">
            {t('new.memory')}
          </label>
          <span className="field" style={{ width: 120 }}>
            <input
              id="new-memory"
              inputMode="decimal"
              placeholder={t('new.whole')}
              value={job.memory}
              onChange={(event) => set({ memory: event.target.value.trim() })}
            />
            <span className="t3">GiB</span>
          </span>
        </span>
        <span className="row">
          <Switch
            label={t('new.share')}
            checked={job.share && job.memory !== ''}
            disabled={!job.memory}
            onChange={(share) => set({ share })}
          />
          <span className="t2">{t('new.share')}</span>
        </span>
      </span>
      <label htmlFor="new-queue">{t('new.inqueue')}</label>
      <span className="row" style={{ flexWrap: 'wrap' }}>
        <span className="field" style={{ width: 160 }}>
          <input
            id="new-queue"
            placeholder={t('new.noqueue')}
            value={job.queue}
            onChange={(event) => set({ queue: event.target.value.trim() })}
          />
        </span>
        <span className="row">
          <span className="t2">{t('new.retry')}</span>
          <Stepper label={t('new.retry')} value={job.retry} {...tries} onChange={(retry) => set({ retry: retry ?? 0 })} />
        </span>
      </span>
    </div>
  )
}
