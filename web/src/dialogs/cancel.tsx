import { useTranslation } from 'react-i18next'
import { useActs } from '../api/acts'
import type { Job } from '../api/types'
import { useDesk } from '../desk'
import { jobCommand } from '../model/command'
import { span } from '../model/format'
import { shownIds } from '../model/ids'
import { ACTIVE, commonName, elapsed } from '../model/jobs'
import { Command } from '../parts/controls'
import { Dialog } from '../parts/dialog'
import { Pill } from '../parts/pill'

const NAMED = 6

/** Names what dies, and offers the harmless half. */
export default function CancelDialog({ jobs, onClose }: { jobs: Job[]; onClose: () => void }) {
  const { t } = useTranslation()
  const { act } = useActs()
  const { mark } = useDesk()
  const now = Date.now()
  const running = jobs.filter((job) => ACTIVE.has(job.state))
  const waiting = jobs.filter((job) => job.state === 'queued')
  const open = [...running, ...waiting]
  const cancel = (these: Job[]): void => {
    mark(new Set())
    void act('cancel', these)
    onClose()
  }
  const title = t(running.length ? 'cancel.titlerunning' : 'cancel.title', { count: open.length, running: running.length })
  return (
    <Dialog
      title={title}
      onClose={onClose}
      footer={
        <>
          {running.length > 0 && waiting.length > 0 && (
            <button type="button" className="btn quiet" onClick={() => cancel(waiting)}>
              {t('cancel.onlywaiting', { count: waiting.length })}
            </button>
          )}
          <span className="grow" />
          <button type="button" className="btn" onClick={onClose}>
            {t('cancel.keep', { count: open.length })} <kbd>Esc</kbd>
          </button>
          <button type="button" className="btn danger" onClick={() => cancel(open)}>
            {t('cancel.do', { count: open.length })}
          </button>
        </>
      }
    >
      <p className="t2">
        <b className="strong">{commonName(open.map((job) => job.name))}</b>{' '}
        <span className="mono">{shownIds(open.map((job) => job.id))}</span>
      </p>
      <table className="list">
        <tbody>
          {running.length > 0 && (
            <tr>
              <td>
                <Pill look="running" />
              </td>
              <td className="num strong">{running.length}</td>
              <td>
                {t('cancel.dies', { count: running.length })}{' '}
                <span className="mono">
                  {running
                    .slice(0, NAMED)
                    .map((job) => `#${job.id} ${span(elapsed(job, now) ?? 0)}`)
                    .join(', ')}
                  {running.length > NAMED && ' …'}
                </span>
              </td>
            </tr>
          )}
          {waiting.length > 0 && (
            <tr>
              <td>
                <Pill look="queued" />
              </td>
              <td className="num strong">{waiting.length}</td>
              <td>{t('cancel.leaves', { count: waiting.length })}</td>
            </tr>
          )}
        </tbody>
      </table>
      <p className="t2">{t('cancel.how')}</p>
      <Command
        text={jobCommand(
          'cancel',
          open.map((job) => job.id),
        )}
      />
    </Dialog>
  )
}
