// A job file that is there: which, and what it would queue. Its text is changed on a page of its own.
import { useTranslation } from 'react-i18next'
import { Link } from 'wouter'
import { type JobFile, useJobFiles } from '../experiments/jobfile'
import { fileAddress } from '../experiments/list'
import { Command } from '../parts/controls'
import { BatchOutlook } from './batch'

interface FileProps {
  path: string
  file: JobFile
  onPick: (path: string) => void
  onLeave: () => void
}

export function FileForm({ path, file, onPick, onLeave }: FileProps) {
  const { t } = useTranslation()
  const { data } = useJobFiles()
  const files = data?.files ?? []
  if (data && files.length === 0)
    return (
      <div className="dry blank">
        <p className="strong">{t('jobfile.none')}</p>
        <p>{t('jobfile.nonehow')}</p>
        <Command text="jostle run jobs.yaml" />
      </div>
    )
  return (
    <>
      <div className="formrow">
        <label htmlFor="new-file">{t('new.file')}</label>
        <span className="row">
          <span className="field grow">
            <select id="new-file" className="mono" data-first value={path} onChange={(event) => onPick(event.target.value)}>
              {files.map((one) => (
                <option key={one.path} value={one.path}>
                  {one.name} · {one.folder}
                </option>
              ))}
            </select>
          </span>
          {path && (
            <Link className="link" href={fileAddress(path)} onClick={onLeave}>
              {t('experiments.edit')}
            </Link>
          )}
        </span>
      </div>
      {path && <BatchOutlook file={file} />}
    </>
  )
}
