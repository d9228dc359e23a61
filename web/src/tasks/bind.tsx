// Which file is the log of a process, where it writes one itself.
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { useTranslation } from 'react-i18next'
import { failed } from '../api/acts'
import { ask } from '../api/call'
import type { Mode } from '../api/types'
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
  const send = async (method: string): Promise<void> => {
    try {
      const query = {
        mode,
        config_index: index,
        queue_id: at.queue,
        process_index: at.process,
        log_path: method === 'POST' ? path : undefined,
      }
      const { data } = await ask<{ success: boolean; message: string }>('/api/log/bind', { method, query })
      say({ text: data.message, bad: !data.success })
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
            <button type="button" className="btn warn" onClick={() => void send('DELETE')}>
              {t('tasks.unbind')}
            </button>
          )}
          <span className="grow" />
          <button type="button" className="btn primary" disabled={!path.trim()} onClick={() => void send('POST')}>
            {t('tasks.bindit')}
          </button>
        </>
      }
    >
      <p className="t2">{t('tasks.bindtext')}</p>
      <label htmlFor="bind-path">{t('tasks.bindpath')}</label>
      <span className="field">
        <input
          id="bind-path"
          className="mono"
          spellCheck={false}
          value={path}
          onChange={(event) => setPath(event.target.value)}
        />
      </span>
    </Dialog>
  )
}
