// Command files: configs on the left, the form beside the text, what would be queued below. Nothing of a file with an error runs.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { lazy, type ReactNode, Suspense, useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { failed } from '../api/acts'
import { ask, get, post } from '../api/call'
import { useMayNot } from '../api/hooks'
import type { Config, Mode } from '../api/types'
import { competeCommand, patchCommand } from '../model/command'
import { withLines } from '../model/queues'
import { Command } from '../parts/controls'
import { Confirm, Dialog } from '../parts/dialog'
import { Icon } from '../parts/icons'
import { say } from '../parts/toast'
import { OfWorkspace } from '../parts/workspace'
import { useSchedulers } from '../state/list'
import { StopScheduler } from '../state/stop'
import { BindDialog } from '../tasks/bind'
import { Configs, deleteCommand, newCommand, runsConfig } from '../tasks/configs'
import { Diff, DiffButton } from '../tasks/diff'
import { useDraft } from '../tasks/draft'
import { QueueForm } from '../tasks/form'
import { useOutlook } from '../tasks/outlook'
import { Queued } from '../tasks/queued'

const Editor = lazy(() => import('../tasks/editor'))

type Bindings = Record<string, { log_path: string }>
type Shown = 'diff' | 'leave' | 'remove' | { queue: number; process: number } | null

export default function TasksPage() {
  const { t } = useTranslation()
  return (
    <>
      <h1 className="sr">{t('page.tasks')}</h1>
      <OfWorkspace>{(picker, path) => <Tasks picker={picker} workspace={path} />}</OfWorkspace>
    </>
  )
}

function Tasks({ picker, workspace }: { picker: ReactNode; workspace: string }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const mayNot = useMayNot()
  const mayWrite = mayNot === undefined
  const [mode, setMode] = useState<Mode>('single')
  const [index, setIndex] = useState(0)
  const [shown, setShown] = useState<Shown>(null)
  const [wanted, setWanted] = useState<(() => void) | null>(null)
  const [jump, setJump] = useState<{ line: number; n: number } | null>(null)
  const draft = useDraft(mode, index)
  const { data: list, error } = useQuery({
    queryKey: ['configs', mode],
    queryFn: ({ signal }) => get<{ configs: Config[] }>(`/api/commands/${mode}/list`, {}, signal),
  })
  const { data: bindings } = useQuery({
    queryKey: ['bindings'],
    queryFn: ({ signal }) => get<Bindings>('/api/log/bindings', {}, signal),
  })
  const schedulers = useSchedulers().data?.schedulers ?? []
  const running = runsConfig(schedulers, mode, index)
  const outlook = useOutlook(mode, index, draft.text, draft.loaded && !running)
  const unsaved = draft.loaded && draft.text !== draft.saved
  const flaws = draft.preview?.flaws ?? draft.file?.flaws ?? []
  const name = list?.configs.find((one) => one.index === index)?.file_name ?? draft.file?.file_path.split('/').at(-1) ?? ''

  useEffect(() => {
    const warn = (event: BeforeUnloadEvent): void => {
      if (unsaved) event.preventDefault()
    }
    window.addEventListener('beforeunload', warn)
    return () => window.removeEventListener('beforeunload', warn)
  }, [unsaved])

  const leave = (then: () => void): void => {
    if (!unsaved) then()
    else {
      setWanted(() => then)
      setShown('leave')
    }
  }
  const nextFlaw = (): void => {
    const line = flaws.find((flaw) => flaw.line && flaw.line > (jump?.line ?? 0))?.line ?? flaws[0]?.line
    if (line) setJump({ line, n: (jump?.n ?? 0) + 1 })
  }
  const refresh = async (): Promise<void> => {
    await client.invalidateQueries({ queryKey: ['configs'] })
    await client.invalidateQueries({ queryKey: ['compete'] })
  }
  const tell = async (command: string, act: () => Promise<string>): Promise<void> => {
    try {
      say({ text: await act(), command })
    } catch (problem) {
      failed(problem)
    }
    await refresh()
  }
  const save = async (): Promise<boolean> => {
    if (!mayWrite || flaws.length) return false
    const done = await draft.save()
    if (done) say({ text: t('tasks.saved', { name }) })
    return done
  }
  const start = async (): Promise<void> => {
    if (unsaved && !(await save())) return
    await tell(competeCommand(mode, index, workspace), async () => {
      const { pid } = await post<{ pid: number }>(`/api/scheduler/${mode}/start`, undefined, { config_index: index })
      return t('tasks.runs', { pid })
    })
  }
  const create = (): Promise<void> =>
    tell(newCommand(mode), async () => {
      const made = await post<{ config: Config }>(`/api/commands/${mode}/new`)
      setIndex(made.config.index)
      return t('tasks.made', { name: made.config.file_name })
    })
  const remove = (): Promise<void> =>
    tell(deleteCommand(mode, index), async () => {
      await ask(`/api/commands/${mode}/${index}`, { method: 'DELETE' })
      setIndex(0)
      return t('tasks.deleted', { name })
    })
  useEffect(() => {
    const down = (event: globalThis.KeyboardEvent): void => {
      if (event.key === 'F8') {
        event.preventDefault()
        nextFlaw()
      } else if (event.key === 's' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault()
        if (unsaved) setShown('diff')
      }
    }
    window.addEventListener('keydown', down)
    return () => window.removeEventListener('keydown', down)
  })
  const blocked = mayNot ?? (flaws.length ? t('tasks.nothing', { count: flaws.length }) : undefined)
  return (
    <>
      <div className="tasks">
        <Configs
          mode={mode}
          index={index}
          configs={list?.configs ?? []}
          schedulers={schedulers}
          flaws={flaws.length}
          path={draft.file?.file_path}
          picker={picker}
          error={error?.message ?? ''}
          onMode={(next) =>
            leave(() => {
              setMode(next)
              setIndex(0)
            })
          }
          onPick={(next) => leave(() => setIndex(next))}
          onNew={() => leave(() => void create())}
          onDelete={() => setShown('remove')}
        />
        <div className="mid">
          <QueueForm
            queues={draft.queues}
            broken={draft.preview?.broken ?? draft.file?.broken ?? []}
            mode={mode}
            readOnly={!mayWrite || !draft.loaded}
            bindings={bindings ?? {}}
            configIndex={index}
            onChange={draft.setQueues}
            onBind={(queue, process) => setShown({ queue, process })}
            onMend={(block, text) => draft.setText(withLines(draft.text, block.line, block.last, text))}
            onGo={(line) => setJump({ line, n: (jump?.n ?? 0) + 1 })}
          />
        </div>
        <div className="right">
          <section className="panel grow" aria-label={t('tasks.text')}>
            <header>
              <code>{name}</code>
              {unsaved && (
                <span className="pill wait">
                  <Icon name="warn" size={10} />
                  {t('tasks.unsaved')}
                </span>
              )}
              <span className="grow" />
              <DiffButton draft={draft} onOpen={() => setShown('diff')} />
            </header>
            <Suspense fallback={<p className="note">{t('tasks.loading')}</p>}>
              {draft.loaded && (
                <Editor
                  text={draft.text}
                  flaws={flaws}
                  readOnly={!mayWrite}
                  label={t('tasks.text')}
                  onChange={draft.setText}
                  onSave={() => unsaved && setShown('diff')}
                  jump={jump}
                />
              )}
            </Suspense>
            {flaws.length > 0 && (
              <ul className="fail" style={{ padding: '6px 12px', maxHeight: 96, overflow: 'auto' }}>
                {flaws.map((flaw) => (
                  <li key={`${flaw.line}${flaw.text}`}>
                    <button
                      type="button"
                      className="link fail"
                      onClick={() => flaw.line && setJump({ line: flaw.line, n: (jump?.n ?? 0) + 1 })}
                    >
                      {flaw.line ? t('tasks.line', { line: flaw.line }) : ''}
                    </button>{' '}
                    {flaw.text}
                  </li>
                ))}
              </ul>
            )}
          </section>
          <Queued draft={draft} flaws={flaws.length} outlook={running ? undefined : outlook} />
        </div>
      </div>
      <div className="bar">
        {draft.error ? (
          <span className="fail" role="alert">
            {draft.error}{' '}
            {draft.conflict && (
              <button type="button" className="btn small" onClick={draft.reload}>
                {t('tasks.reload')}
              </button>
            )}
          </span>
        ) : flaws.length ? (
          <span className="fail row">
            <Icon name="warn" />
            {t('tasks.flaws', { count: flaws.length })}
            <button type="button" className="btn small quiet" onClick={nextFlaw}>
              {t('tasks.next')} <kbd>F8</kbd>
            </button>
          </span>
        ) : !running && outlook?.never.length ? (
          <span className="fail row">
            <Icon name="warn" />
            {t('tasks.never', { count: outlook.never.length })}
          </span>
        ) : (
          <span className="t2">{running ? t('tasks.runs', { pid: running.pid }) : t('tasks.idle')}</span>
        )}
        <span className="grow" />
        {!running && <Command text={competeCommand(mode, index, workspace)} />}
        <button type="button" className="btn" disabled={!unsaved} onClick={draft.reload}>
          {t('tasks.discard')}
        </button>
        <button
          type="button"
          className="btn"
          disabled={!unsaved || blocked !== undefined || draft.busy}
          title={blocked}
          onClick={() => setShown('diff')}
        >
          {t('tasks.save')}
        </button>
        {running ? (
          <StopScheduler one={running} look="danger">
            {t('tasks.stop')}
          </StopScheduler>
        ) : (
          <button
            type="button"
            className="btn primary"
            disabled={blocked !== undefined || !draft.loaded || (!draft.file?.exists && !unsaved)}
            title={blocked}
            onClick={() => void start()}
          >
            <Icon name="play" size={12} />
            {unsaved ? t('tasks.savestart') : t('tasks.start')}
          </button>
        )}
      </div>
      {shown === 'diff' && (
        <Dialog
          title={t('tasks.difftitle', { name })}
          width={760}
          onClose={() => setShown(null)}
          footer={
            <>
              <span className="grow">
                <Command text={patchCommand(draft.file?.file_path ?? name, draft.preview?.diff ?? [])} />
              </span>
              <button type="button" className="btn" onClick={() => setShown(null)}>
                {t('tasks.back')}
              </button>
              <button
                type="button"
                className="btn primary"
                disabled={blocked !== undefined || !unsaved}
                title={blocked}
                onClick={() => {
                  setShown(null)
                  void save()
                }}
              >
                {t('tasks.save')}
              </button>
            </>
          }
        >
          <Diff lines={draft.preview?.diff ?? []} />
        </Dialog>
      )}
      {shown === 'leave' && (
        <Confirm
          title={t('tasks.leave')}
          keep={t('tasks.stay')}
          act={t('tasks.discardchanges')}
          onDo={() => wanted?.()}
          onClose={() => setShown(null)}
        >
          {t('tasks.leavetext', { name })}
        </Confirm>
      )}
      {shown === 'remove' && (
        <Confirm
          title={t('tasks.deletetitle', { name })}
          keep={t('tasks.keepfile')}
          act={t('tasks.delete')}
          command={deleteCommand(mode, index)}
          onDo={() => void remove()}
          onClose={() => setShown(null)}
        >
          {t('tasks.deletetext')}
        </Confirm>
      )}
      {shown !== null && typeof shown === 'object' && (
        <BindDialog
          mode={mode}
          index={index}
          at={shown}
          bound={bindings?.[`${mode}_${index}_${shown.queue}_${shown.process}`]?.log_path ?? ''}
          onClose={() => setShown(null)}
        />
      )}
    </>
  )
}
