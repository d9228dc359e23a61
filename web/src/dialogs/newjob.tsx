// New work: one command, a job file, or a sweep; each with what would become of it now, and the command that does the same.
import { type KeyboardEvent, useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useLocation } from 'wouter'
import { CallError, post } from '../api/call'
import { useJobs } from '../api/hooks'
import { useDesk } from '../desk'
import { useJobFile, useJobFiles, useSubmit } from '../experiments/jobfile'
import { batchAddress } from '../experiments/list'
import { runCommand } from '../experiments/model'
import { addBody, addCommand, complete, type NewJob } from '../model/command'
import { EMPTY_SWEEP, type NewSweep, sweepPath, sweepReady, sweepText } from '../model/sweepfile'
import { CommandForm } from '../newjob/command'
import { FileForm } from '../newjob/file'
import { Outlook } from '../newjob/outlook'
import { useSettled } from '../newjob/settled'
import { SweepForm } from '../newjob/sweep'
import { Command, Segmented } from '../parts/controls'
import { Dialog } from '../parts/dialog'
import { say } from '../parts/toast'

const PLACE = 'jostle.workdir'
type Tab = 'command' | 'file' | 'sweep'

export default function NewJobDialog({ preset, onClose }: { preset: NewJob; onClose: () => void }) {
  const [tab, setTab] = useState<Tab>('command')
  const props = { onClose, tab, setTab }
  if (tab === 'file') return <FileDialog {...props} />
  return tab === 'sweep' ? <SweepDialog {...props} /> : <CommandDialog {...props} preset={preset} />
}

interface TabProps {
  tab: Tab
  setTab: (tab: Tab) => void
  onClose: () => void
}

interface FrameProps extends TabProps {
  command: string
  act: string
  ready: boolean
  onDo: () => Promise<void>
  children: React.ReactNode
}

/** What the three have in common. It stays open while it cannot be done, and says why. */
function Frame({ tab, setTab, onClose, command, act, ready, onDo, children }: FrameProps) {
  const { t } = useTranslation()
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  async function queue(): Promise<void> {
    if (!ready || busy) return
    setBusy(true)
    setError('')
    try {
      await onDo()
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
      extra={
        <Segmented
          label={t('new.kind')}
          value={tab}
          onChange={setTab}
          choices={(['command', 'file', 'sweep'] as const).map((value) => ({ value, label: t(`new.tab.${value}`) }))}
        />
      }
      footer={
        <>
          <span className="grow">
            <Command text={command} />
          </span>
          <button type="button" className="btn" onClick={onClose}>
            {t('control.cancel')} <kbd>Esc</kbd>
          </button>
          <button type="button" className="btn primary" disabled={!ready || busy} onClick={() => void queue()}>
            {act} <kbd>Ctrl ↵</kbd>
          </button>
        </>
      }
    >
      {/* biome-ignore lint/a11y/noStaticElementInteractions: one key for all fields inside */}
      <div onKeyDown={send}>
        {children}
        <p className="fail" role="alert">
          {error}
        </p>
      </div>
    </Dialog>
  )
}

function CommandDialog({ preset, ...tabs }: TabProps & { preset: NewJob }) {
  const { t } = useTranslation()
  const { pick } = useDesk()
  const latest = useJobs().data?.jobs.at(-1)?.workdir
  const [job, setJob] = useState({ ...preset, workdir: preset.workdir || localStorage.getItem(PLACE) || latest || '' })
  const ready = complete(job)
  const queue = async (): Promise<void> => {
    const added = await post<{ id: number }>('/api/v1/add', addBody(job))
    localStorage.setItem(PLACE, job.workdir)
    say({ text: t('new.queued', { id: added.id }) })
    pick(added.id)
  }
  return (
    <Frame {...tabs} command={addCommand(job)} act={t('new.queue')} ready={ready} onDo={queue}>
      <CommandForm job={job} set={(next) => setJob({ ...job, ...next })} />
      <Outlook job={job} ready={ready} />
    </Frame>
  )
}

function FileDialog(tabs: TabProps) {
  const { t } = useTranslation()
  const [, go] = useLocation()
  const submit = useSubmit()
  const files = useJobFiles().data?.files
  const [picked, setPicked] = useState('')
  const path = picked || files?.[0]?.path || ''
  const file = useJobFile(path || null)
  const ready = path !== '' && file.preview?.flaws.length === 0
  const queue = async (): Promise<void> => {
    const batch = await submit(path)
    if (batch) go(batchAddress(batch))
  }
  return (
    <Frame {...tabs} command={runCommand(path || 'jobs.yaml', null, true)} act={t('jobfile.submit')} ready={ready} onDo={queue}>
      <FileForm path={path} file={file} onPick={setPicked} onLeave={tabs.onClose} />
    </Frame>
  )
}

function SweepDialog(tabs: TabProps) {
  const { t } = useTranslation()
  const [, go] = useLocation()
  const submit = useSubmit()
  const folders = useJobFiles().data?.folders
  const [sweep, setSweep] = useState<NewSweep>(EMPTY_SWEEP)
  const folder = sweep.folder || folders?.[0] || ''
  const path = useSettled(folder ? sweepPath(sweep, folder) : null)
  const file = useJobFile(path)
  const { loaded, exists, setText } = file
  const text = sweepReady(sweep) ? sweepText(sweep) : ''
  // biome-ignore lint/correctness/useExhaustiveDependencies: when the text is another one, or is to stand elsewhere
  useEffect(() => {
    if (loaded && !exists && text) setText(text)
  }, [text, path, loaded, exists])
  const ready = text !== '' && loaded && !exists && file.preview?.flaws.length === 0 && file.text === text
  const queue = async (): Promise<void> => {
    if (!path || !(await file.save())) throw new Error(file.error || t('new.cannot'))
    const batch = await submit(path)
    if (batch) go(batchAddress(batch))
  }
  return (
    <Frame
      {...tabs}
      command={runCommand(path ?? 'sweep.yaml', null, true)}
      act={t('jobfile.savesubmit')}
      ready={ready}
      onDo={queue}
    >
      <SweepForm sweep={sweep} file={file} ready={text !== ''} set={(next) => setSweep({ ...sweep, ...next })} />
    </Frame>
  )
}
