import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { CallError, post } from '../api/call'
import { useJobs, useLive } from '../api/hooks'
import type { Against } from '../api/types'
import { useDesk } from '../desk'
import { addBody, addCommand, type NewJob } from '../model/command'
import { Command, Stepper, Switch } from '../parts/controls'
import { Dialog } from '../parts/dialog'
import { Icon } from '../parts/icons'
import { say } from '../parts/toast'
import { Verdict } from '../parts/verdict'

interface DryRun {
  never: string[]
  free: number[]
  needed: number
  starts_now: boolean
}

const PLACE = 'jostle.workdir'
const NO_ROOM: Against = { code: 'memory', params: {} }

const complete = (job: NewJob): boolean => job.command.trim() !== '' && job.workdir.startsWith('/')

const PAUSE_MS = 300

/** A value once nobody has typed for a moment. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), PAUSE_MS)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}

export default function NewJobDialog({ preset, onClose }: { preset: NewJob; onClose: () => void }) {
  const { t } = useTranslation()
  const { pick } = useDesk()
  const latest = useJobs().data?.jobs.at(-1)?.workdir
  const [job, setJob] = useState({ ...preset, workdir: preset.workdir || localStorage.getItem(PLACE) || latest || '' })
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const set = (next: Partial<NewJob>): void => setJob({ ...job, ...next })
  const ready = complete(job)

  async function queue(): Promise<void> {
    if (!ready || busy) return
    setBusy(true)
    setError('')
    try {
      const added = await post<{ id: number; warnings?: unknown[] }>('/api/v1/add', addBody(job))
      localStorage.setItem(PLACE, job.workdir)
      say({ text: t('new.queued', { id: added.id }) })
      pick(added.id)
      onClose()
    } catch (problem) {
      setError(problem instanceof CallError ? problem.message : String(problem))
      setBusy(false)
    }
  }
  const send = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void queue()
  }
  return (
    <Dialog
      title={t('new.title')}
      width={700}
      onClose={onClose}
      footer={
        <>
          <span className="grow">
            <Command text={addCommand(job)} />
          </span>
          <button type="button" className="btn" onClick={onClose}>
            {t('control.cancel')} <kbd>Esc</kbd>
          </button>
          <button type="button" className="btn primary" disabled={!ready || busy} onClick={() => void queue()}>
            {t('new.queue')} <kbd>Ctrl ↵</kbd>
          </button>
        </>
      }
    >
      {/* biome-ignore lint/a11y/noStaticElementInteractions: one key for all fields inside */}
      <div onKeyDown={send}>
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
            <Stepper label="GPU" value={job.gpus} least={0} most={64} onChange={(gpus) => set({ gpus: gpus ?? 0 })} />
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
            <Switch
              label={t('new.share')}
              checked={job.share && job.memory !== ''}
              disabled={!job.memory}
              onChange={(share) => set({ share })}
            />
            <span className="t2">{t('new.share')}</span>
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
            <span className="t2">{t('new.retry')}</span>
            <Stepper label={t('new.retry')} value={job.retry} most={99} onChange={(retry) => set({ retry: retry ?? 0 })} />
          </span>
        </div>
        <Outlook job={job} ready={ready} />
        <p className="fail" role="alert">
          {error}
        </p>
      </div>
    </Dialog>
  )
}

/** What would become of it now: the largest thing in the dialog. */
function Outlook({ job, ready }: { job: NewJob; ready: boolean }) {
  const { t, i18n } = useTranslation()
  const { cards, engine } = useLive()
  const asked = useSettled(job)
  const { data, error } = useQuery({
    queryKey: ['dry', asked, i18n.language, engine],
    queryFn: () => post<DryRun>('/api/v1/add', addBody(asked), { dry_run: true }),
    enabled: complete(asked),
    refetchInterval: 3000,
    placeholderData: (last) => last,
    retry: false,
  })
  if (!ready) return <div className="dry blank">{t('new.blank')}</div>
  if (error)
    return (
      <div className="dry waits">
        <h3 className="wait">{t('new.cannot')}</h3>
        {error.message}
      </div>
    )
  if (!data) return <div className="dry blank">{t('new.asking')}</div>
  const never = data.never[0]
  const starts = !never && data.starts_now
  const refusals = new Map(
    cards?.gpus.map((card) => [card.index, data.free.includes(card.index) ? null : (card.refusal ?? NO_ROOM)]),
  )
  const why =
    cards?.gpus.filter((card) => card.refusal).map((card) => `GPU ${card.index}: ${card.refusal?.text ?? card.refusal?.code}`) ??
    []
  return (
    <div className={`dry${starts ? '' : ' waits'}`} aria-live="polite">
      <div className="row">
        <h3 className={`row ${starts ? 'free' : 'wait'}`}>
          <Icon name={starts ? 'tick' : 'clock'} />
          {never ? t('new.never') : starts ? t('new.starts') : t('new.waits')}
        </h3>
        <span className="grow" />
        {cards && job.gpus > 0 && <Verdict cards={cards.gpus} refused={refusals} />}
      </div>
      <p className="t2">
        {never ??
          (job.gpus === 0
            ? t('new.nogpu')
            : t('new.fits', { count: data.free.length, needed: data.needed, cards: data.free.join(', ') || '–' }))}
        {!starts && !never && job.queue && <> {t('new.inturn', { queue: job.queue })}</>}
      </p>
      {!starts && !never && job.gpus > 0 && why.length > 0 && <p className="t2">{why.slice(0, 3).join(' · ')}</p>}
    </div>
  )
}
