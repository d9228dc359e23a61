// What an act brought, said once at the foot of the page, perhaps with a way back.
import { useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { CopyButton } from './controls'

export interface Toast {
  text: string
  bad?: boolean
  undo?: () => void
  command?: string // that does the same
}

interface Shown extends Toast {
  id: number
}

type Listener = (toast: Toast) => void
let listener: Listener | null = null
let count = 0

export const say = (toast: Toast): void => listener?.(toast)

const SHOWN_MS = 6000
const UNDO_MS = 30_000

export function Toasts() {
  const { t } = useTranslation()
  const [shown, setShown] = useState<Shown[]>([])
  useEffect(() => {
    const drop = (id: number): void => setShown((all) => all.filter((one) => one.id !== id))
    listener = (toast) => {
      count += 1
      const id = count
      setShown((all) => [...all.slice(-2), { ...toast, id }])
      setTimeout(() => drop(id), toast.undo ? UNDO_MS : SHOWN_MS)
    }
    return () => {
      listener = null
    }
  }, [])
  const close = (id: number): void => setShown((all) => all.filter((one) => one.id !== id))
  return (
    <output className="toasts" aria-live="polite">
      {shown.map((toast) => (
        <div key={toast.id} className={`toast${toast.bad ? ' bad' : ''}`}>
          <span>{toast.text}</span>
          {toast.command && (
            <span className="cmd">
              <code title={toast.command}>{toast.command}</code>
              <CopyButton text={toast.command} label={t('control.copycommand')} />
            </span>
          )}
          {toast.undo && (
            <button
              type="button"
              className="link"
              onClick={() => {
                toast.undo?.()
                close(toast.id)
              }}
            >
              {t('control.undo')}
            </button>
          )}
        </div>
      ))}
    </output>
  )
}
