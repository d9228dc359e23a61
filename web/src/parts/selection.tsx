import { useTranslation } from 'react-i18next'
import { useActs } from '../api/acts'
import { useBlocked } from '../api/hooks'
import type { Job } from '../api/types'
import { useDesk } from '../desk'
import { jobCommand } from '../model/command'
import { FINAL } from '../model/jobs'
import { Act } from './act'

const idsOf = (jobs: readonly Job[]): number[] => jobs.map((job) => job.id)

/** What can be done to the jobs that are selected. Each act is about those that it can be done to. */
export function SelectionBar({ jobs }: { jobs: Job[] }) {
  const { t } = useTranslation()
  const { mark, open } = useDesk()
  const { act } = useActs()
  const blocked = useBlocked()
  if (jobs.length === 0) return null
  const unfinished = jobs.filter((job) => !FINAL.has(job.state))
  const over = jobs.filter((job) => FINAL.has(job.state))
  const waiting = jobs.filter((job) => job.state === 'queued')
  const held = waiting.filter((job) => job.intent === 'hold')
  const free = waiting.filter((job) => job.intent !== 'hold')
  return (
    <div className="selbar">
      <b>{t('jobs.selected', { count: jobs.length })}</b>
      {unfinished.length > 0 && (
        <Act
          look="small warn"
          blocked={blocked}
          command={jobCommand('cancel', idsOf(unfinished))}
          onDo={() => open({ kind: 'cancel', jobs: unfinished })}
        >
          {t('act.canceln', { count: unfinished.length })}
        </Act>
      )}
      {over.length > 0 && (
        <Act look="small" blocked={blocked} command={jobCommand('retry', idsOf(over))} onDo={() => void act('retry', over)}>
          {t('act.retryn', { count: over.length })}
        </Act>
      )}
      {free.length > 0 && (
        <Act look="small" blocked={blocked} command={jobCommand('hold', idsOf(free))} onDo={() => void act('hold', free)}>
          {t('act.holdn', { count: free.length })}
        </Act>
      )}
      {held.length > 0 && (
        <Act look="small" blocked={blocked} command={jobCommand('unhold', idsOf(held))} onDo={() => void act('unhold', held)}>
          {t('act.unholdn', { count: held.length })}
        </Act>
      )}
      <button type="button" className="btn small quiet" onClick={() => mark(new Set())}>
        {t('jobs.unselect')}
      </button>
    </div>
  )
}
