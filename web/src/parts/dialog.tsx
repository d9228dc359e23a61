// The browser's own dialog: it keeps the focus inside, gives it back, and Esc closes it.
import { type CSSProperties, type KeyboardEvent, type ReactNode, useEffect, useId, useRef } from 'react'
import { useTranslation } from 'react-i18next'
import { Command } from './controls'
import { Icon } from './icons'
import { typing } from './keys'

interface DialogProps {
  title: ReactNode
  onClose: () => void
  children: ReactNode
  footer?: ReactNode
  extra?: ReactNode
  width?: number
}

function useModal(onClose: () => void) {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = ref.current
    if (!dialog || dialog.open) return
    dialog.showModal()
    dialog.querySelector<HTMLElement>('[data-first]')?.focus() // else what stands first has it: the button that closes
  }, [])
  return {
    ref,
    onCancel: (event: { preventDefault: () => void }) => {
      event.preventDefault()
      onClose()
    },
    onClick: (event: { target: unknown; currentTarget: unknown }) => {
      if (event.target === event.currentTarget) onClose() // the backdrop
    },
  }
}

export function Dialog({ title, onClose, children, footer, extra, width }: DialogProps) {
  const { t } = useTranslation()
  const id = useId()
  const style = width ? ({ '--w': `${width}px` } as CSSProperties) : undefined
  return (
    <dialog {...useModal(onClose)} aria-labelledby={id}>
      <div className="dialog" style={style}>
        <header>
          <h2 id={id}>{title}</h2>
          {extra}
          <button type="button" className="icon" aria-label={t('control.close')} onClick={onClose}>
            <Icon name="cross" />
          </button>
        </header>
        <div className="body">{children}</div>
        {footer && <footer>{footer}</footer>}
      </div>
    </dialog>
  )
}

interface ConfirmProps {
  title: string
  children: ReactNode
  keep: string // the way out names what stays
  act: string
  command?: string // that does the same
  onDo: () => void
  onClose: () => void
}

/** A question before something is lost. */
export function Confirm({ title, children, keep, act, command, onDo, onClose }: ConfirmProps) {
  return (
    <Dialog
      title={title}
      onClose={onClose}
      footer={
        <>
          {command && (
            <span className="grow">
              <Command text={command} />
            </span>
          )}
          <button type="button" className="btn" onClick={onClose}>
            {keep}
          </button>
          <button
            type="button"
            className="btn danger"
            onClick={() => {
              onClose()
              onDo()
            }}
          >
            {act}
          </button>
        </>
      }
    >
      {children}
    </Dialog>
  )
}

interface DrawerProps {
  label: string
  onClose: () => void
  onArrow: (by: 1 | -1) => void // left and right, where nothing inside wants them
  children: ReactNode
}

export function Drawer({ label, onClose, onArrow, children }: DrawerProps) {
  const arrows = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key] as 1 | -1 | undefined
    if (by && !event.defaultPrevented && !typing(event.target)) onArrow(by)
  }
  return (
    <dialog {...useModal(onClose)} className="side" aria-label={label} onKeyDown={arrows}>
      <div className="drawer scroll">{children}</div>
    </dialog>
  )
}
