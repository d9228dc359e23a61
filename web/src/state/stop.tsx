// Stops a scheduler. What dies with it is named before; where nothing runs or waits nothing is asked.
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { failed } from '../api/acts'
import { post } from '../api/call'
import { useMayNot } from '../api/hooks'
import type { Scheduler } from '../api/types'
import { Act } from '../parts/act'
import { Confirm } from '../parts/dialog'
import { say } from '../parts/toast'

export function StopScheduler({ one, look, children }: { one: Scheduler; look: string; children: ReactNode }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const blocked = useMayNot()
  const [asked, setAsked] = useState(false)
  const running = one.running_tasks
  const waiting = Math.max(0, one.pending_tasks)
  const command = `kill ${one.pid}`
  const stop = async (): Promise<void> => {
    try {
      await post('/api/v1/compete/stop', { pid: one.pid })
      say({ text: t('sched.stopping', { pid: one.pid }), command })
    } catch (error) {
      failed(error)
    }
    await client.invalidateQueries({ queryKey: ['compete'] })
  }
  return (
    <>
      <Act
        look={look}
        icon="stop"
        blocked={blocked}
        command={command}
        onDo={() => (running || waiting ? setAsked(true) : void stop())}
      >
        {children}
      </Act>
      {asked && (
        <Confirm
          title={t('sched.asked', { running, waiting })}
          keep={t('sched.keep')}
          act={t('sched.do')}
          command={command}
          onDo={() => void stop()}
          onClose={() => setAsked(false)}
        >
          <p className="t2">
            <b className="strong">{t('sched.name', { mode: t(`mode.${one.mode}`), n: one.config_index + 1 })}</b>{' '}
            <span className="mono">pid {one.pid}</span>
          </p>
          <p className="t2">{t('cancel.how')}</p>
        </Confirm>
      )}
    </>
  )
}
