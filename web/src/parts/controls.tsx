// The few controls this page needs: a choice of one, a number with steps, a switch, a command to copy.
import { type KeyboardEvent, type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { Icon } from './icons'

interface Choice<T extends string> {
  value: T
  label: ReactNode
  title?: string
}

interface SegmentedProps<T extends string> {
  label: string
  value: T
  choices: Choice<T>[]
  onChange: (value: T) => void
  wide?: boolean
}

export function Segmented<T extends string>({ label, value, choices, onChange, wide }: SegmentedProps<T>) {
  const step = (event: KeyboardEvent<HTMLDivElement>): void => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key]
    if (!by) return
    event.preventDefault()
    const at = choices.findIndex((choice) => choice.value === value)
    const next = choices[(at + by + choices.length) % choices.length]
    if (!next) return
    onChange(next.value)
    const buttons = event.currentTarget.querySelectorAll('button')
    buttons[choices.indexOf(next)]?.focus()
  }
  return (
    <div className={`seg${wide ? ' wide' : ''}`} role="radiogroup" aria-label={label} onKeyDown={step}>
      {choices.map((choice) => (
        // biome-ignore lint/a11y/useSemanticElements: a native radio cannot hold an icon and look like a button
        <button
          key={choice.value}
          type="button"
          role="radio"
          aria-checked={choice.value === value}
          aria-label={choice.title}
          title={choice.title}
          tabIndex={choice.value === value ? 0 : -1}
          onClick={() => onChange(choice.value)}
        >
          {choice.label}
        </button>
      ))}
    </div>
  )
}

interface StepperProps {
  label: string
  value: number | null
  onChange: (value: number | null) => void
  least?: number
  most?: number
  disabled?: boolean
  optional?: boolean
}

export function Stepper({ label, value, onChange, least = 0, most = 1e9, disabled, optional }: StepperProps) {
  const { t } = useTranslation()
  const set = (next: number): void => onChange(Math.min(most, Math.max(least, next)))
  return (
    <span className="stepper">
      <button
        type="button"
        aria-label={t('control.less', { what: label })}
        disabled={disabled}
        onClick={() => set((value ?? least) - 1)}
      >
        −
      </button>
      <input
        inputMode="decimal"
        aria-label={label}
        value={value ?? ''}
        placeholder={optional ? '–' : undefined}
        disabled={disabled}
        onChange={(event) => {
          const text = event.target.value.trim()
          if (text === '' && optional) onChange(null)
          else if (text !== '' && !Number.isNaN(Number(text))) onChange(Number(text))
        }}
      />
      <button
        type="button"
        aria-label={t('control.more', { what: label })}
        disabled={disabled}
        onClick={() => set((value ?? least) + 1)}
      >
        +
      </button>
    </span>
  )
}

interface SwitchProps {
  label: string
  checked: boolean
  onChange: (checked: boolean) => void
  disabled?: boolean
}

export const Switch = ({ label, checked, onChange, disabled }: SwitchProps) => (
  <input
    type="checkbox"
    role="switch"
    className="switch"
    aria-label={label}
    checked={checked}
    aria-checked={checked}
    disabled={disabled}
    onChange={(event) => onChange(event.target.checked)}
  />
)

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false // plain http beyond localhost has no clipboard; the text can be selected
  }
}

const SHOWN_MS = 1500

export function CopyButton({ text, label }: { text: string; label?: string }) {
  const { t } = useTranslation()
  const [done, setDone] = useState(false)
  const copy = async (): Promise<void> => {
    if (!(await copyText(text))) return
    setDone(true)
    setTimeout(() => setDone(false), SHOWN_MS)
  }
  const title = done ? t('control.copied') : (label ?? t('control.copy'))
  return (
    <button type="button" className="icon" aria-label={title} title={title} onClick={copy}>
      <Icon name={done ? 'tick' : 'copy'} />
    </button>
  )
}

/** An act as the command that does the same. */
export const Command = ({ text }: { text: string }) => (
  <span className="cmd">
    <code title={text}>{text}</code>
    <CopyButton text={text} />
  </span>
)
