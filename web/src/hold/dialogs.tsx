// A program on cards that are held, and more or fewer of them.
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useJobs } from '../api/hooks'
import { setCommand, startCommand } from '../model/command'
import { Command, Switch } from '../parts/controls'
import { Dialog } from '../parts/dialog'
import { type Allocation, type Program, useHolding } from './data'

interface AskProps {
  title: string
  act: string
  command: string
  ready: boolean
  onDo: () => Promise<void>
  onClose: () => void
  children: ReactNode
}

/** Stays open while it cannot be done, and says why. */
function Ask({ title, act, command, ready, onDo, onClose, children }: AskProps) {
  const { t } = useTranslation()
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const go = async (): Promise<void> => {
    if (!ready || busy) return
    setBusy(true)
    try {
      await onDo()
      onClose()
    } catch (problem) {
      setError(problem instanceof Error ? problem.message : String(problem))
      setBusy(false)
    }
  }
  return (
    <Dialog
      title={title}
      width={620}
      onClose={onClose}
      footer={
        <>
          <span className="grow">
            <Command text={command} />
          </span>
          <button type="button" className="btn" onClick={onClose}>
            {t('control.cancel')} <kbd>Esc</kbd>
          </button>
          <button type="submit" form="ask" className="btn primary" disabled={!ready || busy}>
            {act}
          </button>
        </>
      }
    >
      <form
        id="ask"
        onSubmit={(event) => {
          event.preventDefault()
          void go()
        }}
      >
        <div className="formrow">{children}</div>
        <p className="fail" role="alert">
          {error}
        </p>
      </form>
    </Dialog>
  )
}

export function StartDialog({ one, beside, onClose }: { one: Allocation; beside: boolean; onClose: () => void }) {
  const { t } = useTranslation()
  const { start } = useHolding()
  const latest = useJobs().data?.jobs.findLast((job) => job.workdir.length > 1)?.workdir
  const [program, setProgram] = useState<Program>({
    run: '',
    workdir: localStorage.getItem('jostle.workdir') ?? latest ?? '',
    beside,
    gpus: '',
  })
  const set = (next: Partial<Program>): void => setProgram({ ...program, ...next })
  return (
    <Ask
      title={t('hold.starttitle', { name: one.name, gpus: one.gpus.join(', ') })}
      act={t('hold.dostart')}
      command={startCommand(one.name, program.run, program.workdir, program.beside, program.gpus)}
      ready={program.workdir.startsWith('/')}
      onDo={() => start(one, program)}
      onClose={onClose}
    >
      <label htmlFor="start-run">{t('new.command')}</label>
      <span>
        <textarea
          id="start-run"
          className="text"
          rows={3}
          data-first
          spellCheck={false}
          placeholder="python train.py"
          aria-describedby="start-norun"
          value={program.run}
          onChange={(event) => set({ run: event.target.value })}
        />
        <span id="start-norun" className="t2">
          {t('hold.norun')}
        </span>
      </span>
      <label htmlFor="start-workdir">{t('new.workdir')}</label>
      <span className="field">
        <input
          id="start-workdir"
          className="mono"
          spellCheck={false}
          placeholder="/home/…"
          value={program.workdir}
          onChange={(event) => set({ workdir: event.target.value })}
        />
      </span>
      <label htmlFor="start-gpus">GPU</label>
      <span className="row">
        <span className="field" style={{ width: 120 }}>
          <input
            id="start-gpus"
            placeholder={t('hold.all', { count: one.gpus.length })}
            value={program.gpus}
            onChange={(event) => set({ gpus: event.target.value })}
          />
        </span>
        <Switch label={t('hold.beside')} checked={program.beside} onChange={(on) => set({ beside: on })} />
        <span className="t2">{t('hold.beside')}</span>
      </span>
    </Ask>
  )
}

export function ResizeDialog({ one, onClose }: { one: Allocation; onClose: () => void }) {
  const { t } = useTranslation()
  const { resize } = useHolding()
  const [least = 1, most = 1] = one.gpu_request
  const [gpus, setGpus] = useState(least === most ? String(most) : `${least}-${most}`)
  return (
    <Ask
      title={t('hold.resizetitle', { name: one.name })}
      act={t('hold.doresize')}
      command={setCommand(one.id, { gpus: gpus.trim() })}
      ready={/^\d+(-\d+)?$/.test(gpus.trim())}
      onDo={() => resize(one, gpus.trim())}
      onClose={onClose}
    >
      <label htmlFor="resize-gpus">GPU</label>
      <span className="row">
        <span className="field" style={{ width: 120 }}>
          <input id="resize-gpus" data-first placeholder="1-4" value={gpus} onChange={(event) => setGpus(event.target.value)} />
        </span>
        <span className="t2">{t('hold.resizehow')}</span>
      </span>
    </Ask>
  )
}
