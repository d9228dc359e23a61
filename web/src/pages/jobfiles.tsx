// Job files: which there are, the text of one with errors at their lines, and what of it would be queued.
import { lazy, Suspense, useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Link, useLocation, useSearch } from 'wouter'
import { failed } from '../api/acts'
import { useBlocked, useRights } from '../api/hooks'
import { type JobFile, type Listed, useJobFile, useJobFiles, useSubmit } from '../experiments/jobfile'
import { batchAddress, fileAddress } from '../experiments/list'
import { runCommand } from '../experiments/model'
import { WouldQueue } from '../experiments/would'
import { Command } from '../parts/controls'
import { Dialog } from '../parts/dialog'
import { Icon } from '../parts/icons'
import { say } from '../parts/toast'
import { Diff, DiffButton } from '../tasks/diff'
import '../style/experiments.css'

const Editor = lazy(() => import('../tasks/editor'))

export default function JobFiles() {
  const { t } = useTranslation()
  const [, go] = useLocation()
  const named = new URLSearchParams(useSearch()).get('path')
  const { data, error } = useJobFiles()
  const path = named ?? data?.files[0]?.path ?? null
  const file = useJobFile(path)
  const [wanted, setWanted] = useState<string | null>(null)
  const pick = (next: string): void => {
    if (next === path) return
    if (file.unsaved && file.text) setWanted(next)
    else go(fileAddress(next))
  }
  useEffect(() => {
    const warn = (event: BeforeUnloadEvent): void => {
      if (file.unsaved && file.exists) event.preventDefault()
    }
    window.addEventListener('beforeunload', warn)
    return () => window.removeEventListener('beforeunload', warn)
  }, [file.unsaved, file.exists])
  return (
    <>
      <h1 className="sr">{t('jobfile.title')}</h1>
      <div className="jobfiles">
        <FileList
          files={data?.files ?? []}
          folders={data?.folders ?? []}
          error={error?.message ?? ''}
          path={path}
          onPick={pick}
        />
        {path === null ? (
          <section className="panel note">
            <p className="strong">{t('jobfile.none')}</p>
            <p>{t('jobfile.nonehow')}</p>
            <Command text="jostle run jobs.yaml" />
          </section>
        ) : (
          <OneFile key={path} path={path} file={file} />
        )}
      </div>
      {wanted !== null && (
        <Dialog
          title={t('tasks.leave')}
          onClose={() => setWanted(null)}
          footer={
            <>
              <button type="button" className="btn" onClick={() => setWanted(null)}>
                {t('tasks.stay')}
              </button>
              <button
                type="button"
                className="btn danger"
                onClick={() => {
                  setWanted(null)
                  go(fileAddress(wanted))
                }}
              >
                {t('tasks.discardchanges')}
              </button>
            </>
          }
        >
          {t('tasks.leavetext', { name: path?.split('/').at(-1) ?? '' })}
        </Dialog>
      )}
    </>
  )
}

interface ListProps {
  files: Listed[]
  folders: string[]
  error: string
  path: string | null
  onPick: (path: string) => void
}

function FileList({ files, folders, error, path, onPick }: ListProps) {
  const { t } = useTranslation()
  const { mayWrite } = useRights()
  const [name, setName] = useState('')
  const [folder, setFolder] = useState('')
  const known = path !== null && !files.some((one) => one.path === path)
  return (
    <section className="panel" aria-label={t('jobfile.title')}>
      <header>
        <h2>{t('jobfile.title')}</h2>
        <span className="grow" />
        <Link className="link" href="/experiment">
          {t('page.experiments')}
        </Link>
      </header>
      <div className="scroll">
        {error && <p className="note fail">{error}</p>}
        {[...(known ? [{ path, name: path.split('/').at(-1) ?? path, folder: '', batch: null }] : []), ...files].map((one) => (
          <button
            key={one.path}
            type="button"
            className="config"
            title={one.path}
            aria-current={one.path === path}
            onClick={() => onPick(one.path)}
          >
            <span className="grow">
              {one.name}
              <code className="clip">{one.folder}</code>
            </span>
            {one.batch !== null && <span className="pill">{t('jobfile.batch', { id: one.batch })}</span>}
          </button>
        ))}
      </div>
      {folders.length > 0 && (
        <footer>
          <form
            className="newfile"
            onSubmit={(event) => {
              event.preventDefault()
              const whole = /\.ya?ml$/.test(name) ? name : `${name}.yaml`
              onPick(`${folder || folders[0]}/${whole}`)
              setName('')
            }}
          >
            <label className="field grow">
              <span className="sr">{t('jobfile.newname')}</span>
              <input value={name} placeholder={t('jobfile.newname')} onChange={(event) => setName(event.target.value)} />
            </label>
            {folders.length > 1 && (
              <label className="field">
                <span className="sr">{t('jobfile.folder')}</span>
                <select value={folder || folders[0]} onChange={(event) => setFolder(event.target.value)}>
                  {folders.map((one) => (
                    <option key={one}>{one}</option>
                  ))}
                </select>
              </label>
            )}
            <button type="submit" className="btn" disabled={!mayWrite || !name.trim() || name.includes('/')}>
              <Icon name="plus" size={12} />
              {t('jobfile.new')}
            </button>
          </form>
        </footer>
      )}
    </section>
  )
}

function OneFile({ path, file }: { path: string; file: JobFile }) {
  const { t } = useTranslation()
  const [, go] = useLocation()
  const { mayWrite } = useRights()
  const blocked = useBlocked()
  const [saving, setSaving] = useState(false)
  const [jump, setJump] = useState<{ line: number; n: number } | null>(null)
  const queueFile = useSubmit()
  const name = path.split('/').at(-1) ?? path
  const flaws = file.preview?.flaws ?? []
  const own = flaws.filter((flaw) => flaw.file === path)
  const why = !mayWrite ? t('shell.readonly') : own.length ? t('tasks.nothing', { count: own.length }) : undefined
  const to = (line: number | null | undefined): void => {
    if (line) setJump({ line, n: (jump?.n ?? 0) + 1 })
  }
  const next = (): void => to((own.find((flaw) => (flaw.line ?? 0) > (jump?.line ?? 0)) ?? own[0])?.line)
  const askSave = (): void => {
    if (file.unsaved && !why) setSaving(true)
  }
  const save = async (): Promise<boolean> => {
    const done = await file.save()
    if (done) say({ text: t('tasks.saved', { name }) })
    return done
  }
  const submit = async (): Promise<void> => {
    if (file.unsaved && !(await save())) return
    try {
      const batch = await queueFile(path)
      if (batch) go(batchAddress(batch))
    } catch (problem) {
      failed(problem)
    }
  }
  useEffect(() => {
    const down = (event: KeyboardEvent): void => {
      if (event.key === 'F8') {
        event.preventDefault()
        next()
      } else if (event.key === 's' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault()
        askSave()
      }
    }
    window.addEventListener('keydown', down)
    return () => window.removeEventListener('keydown', down)
  })
  return (
    <>
      <section className="panel" aria-label={t('jobfile.text')}>
        <header>
          <code className="clip" title={path}>
            {name}
          </code>
          {file.unsaved && (
            <span className="pill wait">
              <Icon name="warn" size={10} />
              {t(file.exists ? 'tasks.unsaved' : 'tasks.missing')}
            </span>
          )}
          <span className="grow" />
          <DiffButton draft={file} onOpen={() => setSaving(true)} />
        </header>
        <Suspense fallback={<p className="note">{t('tasks.loading')}</p>}>
          {file.loaded && (
            <Editor
              isYaml
              text={file.text}
              flaws={own}
              readOnly={!mayWrite}
              label={t('jobfile.text')}
              onChange={file.setText}
              onSave={askSave}
              jump={jump}
            />
          )}
        </Suspense>
        {flaws.length > 0 && (
          <ul className="fail flaws">
            {flaws.map((flaw) => (
              <li key={`${flaw.file}${flaw.line}${flaw.text}`}>
                {flaw.file === path ? (
                  flaw.line && (
                    <button type="button" className="link fail" onClick={() => to(flaw.line)}>
                      {t('tasks.line', { line: flaw.line })}
                    </button>
                  )
                ) : (
                  <code>
                    {flaw.file}:{flaw.line}
                  </code>
                )}{' '}
                {flaw.text}
              </li>
            ))}
            {(file.preview?.more ?? 0) > 0 && <li>{t('jobfile.more', { count: file.preview?.more ?? 0 })}</li>}
          </ul>
        )}
      </section>
      <WouldQueue looked={file.preview} flaws={flaws.length} />
      <div className="bar">
        {file.error ? (
          <span className="fail" role="alert">
            {file.conflict ? t('jobfile.changed') : file.error}{' '}
            {file.conflict && (
              <>
                <button type="button" className="btn small" onClick={file.compare}>
                  {t('jobfile.compare')}
                </button>{' '}
                <button type="button" className="btn small" onClick={file.reload}>
                  {t('tasks.reload')}
                </button>
              </>
            )}
          </span>
        ) : flaws.length ? (
          <span className="fail row">
            <Icon name="warn" />
            {t('tasks.flaws', { count: flaws.length + (file.preview?.more ?? 0) })}
            <button type="button" className="btn small quiet" onClick={next}>
              {t('tasks.next')} <kbd>F8</kbd>
            </button>
          </span>
        ) : (
          <span className="t2">{t('jobfile.how')}</span>
        )}
        <span className="grow" />
        <Command text={runCommand(path, null, true)} />
        <button type="button" className="btn" disabled={!file.unsaved} onClick={file.reload}>
          {t('tasks.discard')}
        </button>
        <button
          type="button"
          className="btn"
          disabled={!file.unsaved || why !== undefined || file.busy}
          title={why}
          onClick={() => setSaving(true)}
        >
          {t('tasks.save')}
        </button>
        <button
          type="button"
          className="btn primary"
          disabled={(why ?? blocked) !== undefined || flaws.length > 0 || !file.preview || file.busy}
          title={why ?? blocked}
          onClick={() => void submit()}
        >
          <Icon name="play" size={12} />
          {t(file.unsaved ? 'jobfile.savesubmit' : 'jobfile.submit')}
        </button>
      </div>
      {saving && (
        <Dialog
          title={t('tasks.difftitle', { name })}
          width={760}
          onClose={() => setSaving(false)}
          footer={
            <>
              <button type="button" className="btn" onClick={() => setSaving(false)}>
                {t('tasks.back')}
              </button>
              <button
                type="button"
                className="btn primary"
                disabled={why !== undefined || !file.unsaved}
                title={why}
                onClick={() => {
                  setSaving(false)
                  void save()
                }}
              >
                {t('tasks.save')}
              </button>
            </>
          }
        >
          <Diff lines={file.preview?.diff ?? []} />
        </Dialog>
      )}
    </>
  )
}
