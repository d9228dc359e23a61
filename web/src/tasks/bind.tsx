// Which file is the log of a process, where it writes one itself.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { failed } from '../api/acts'
import { ask, wholeAddress } from '../api/call'
import type { Mode } from '../api/types'
import { callCommand } from '../model/command'
import { Act } from '../parts/act'
import { Dialog } from '../parts/dialog'
import { say } from '../parts/toast'

interface BindProps {
  mode: Mode
  index: number
  at: { queue: number; process: number }
  bound: string
  onClose: () => void
}

export function BindDialog({ mode, index, at, bound, onClose }: BindProps) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const [path, setPath] = useState(bound)
  const queryOf = (method: string) => ({
    mode,
    config_index: index,
    queue_id: at.queue,
    process_index: at.process,
    log_path: method === 'POST' ? path : undefined,
  })
  const commandOf = (method: string): string => callCommand(method, wholeAddress('/api/log/bind', queryOf(method)))
  const send = async (method: string): Promise<void> => {
    try {
      const { data } = await ask<{ success: boolean }>('/api/log/bind', { method, query: queryOf(method) })
      const text = t(!data.success ? 'tasks.notbound' : method === 'POST' ? 'tasks.isbound' : 'tasks.isunbound', { path })
      say({ text, bad: !data.success, command: data.success ? commandOf(method) : undefined })
      if (data.success) onClose()
    } catch (error) {
      failed(error)
    }
    await client.invalidateQueries({ queryKey: ['bindings'] })
  }
  return (
    <Dialog
      title={t('tasks.bindtitle', { queue: at.queue, id: at.process + 1 })}
      onClose={onClose}
      footer={
        <>
          {bound && (
            <Act look="warn" command={commandOf('DELETE')} onDo={() => void send('DELETE')}>
              {t('tasks.unbind')}
            </Act>
          )}
          <span className="grow" />
          <Act look="primary" disabled={!path.trim()} command={commandOf('POST')} onDo={() => void send('POST')}>
            {t('tasks.bindit')}
          </Act>
        </>
      }
    >
      <p className="t2">{t('tasks.bindtext')}</p>
      <label htmlFor="bind-path">{t('tasks.bindpath')}</label>
      <span className="field">
        <input
          id="bind-path"
          data-first
          className="mono"
          spellCheck={false}
          value={path}
          onChange={(event) => setPath(event.target.value)}
        />
      </span>
    </Dialog>
  )
}
