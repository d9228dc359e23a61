// A button that does something, and beside it the command that does the same, to be copied.
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { CopyButton } from './controls'
import { Icon, type IconName } from './icons'

interface ActProps {
  command: string
  children: ReactNode
  onDo: () => void
  icon?: IconName
  look?: string // further class names of the button
  blocked?: string | undefined // why it cannot be done now
  disabled?: boolean
}

export function Act({ command, children, onDo, icon, look = '', blocked, disabled }: ActProps) {
  const { t } = useTranslation()
  return (
    <span className="act">
      <button
        type="button"
        className={`btn ${look}`}
        disabled={disabled || blocked !== undefined}
        title={blocked ?? command}
        onClick={onDo}
      >
        {icon && <Icon name={icon} size={12} />}
        {children}
      </button>
      <CopyButton text={command} label={t('control.copyas', { command })} />
    </span>
  )
}
