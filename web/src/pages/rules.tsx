// The rules as a form: a control for each key of the settings, whose words are those of the table of fields; beside it what they
// mean for today's cards. Comments of the file stay.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { ask, CallError, wholeAddress } from '../api/call'
import { useFields, useLive, useRights } from '../api/hooks'
import type { Flaw } from '../api/types'
import { callCommand } from '../model/command'
import { control, grouped, keysOf, nested, USUAL_LEAST, valueAt } from '../model/rules'
import { Command, Stepper, Switch } from '../parts/controls'
import { Icon } from '../parts/icons'
import { say } from '../parts/toast'
import { OfWorkspace } from '../parts/workspace'
import { useEffects } from '../rules/effects'
import { Effect, Formula, WhatIf } from '../rules/formula'

interface Told {
  values: Record<string, unknown>
  text: string
  flaws: Flaw[]
  warnings: string[]
  path: string
  fixed: string[]
}

const number = (value: unknown): number | null => (typeof value === 'number' ? value : null)

export default function RulesPage() {
  const { t } = useTranslation()
  return (
    <>
      <h1 className="sr">{t('page.rules')}</h1>
      <OfWorkspace>{(picker) => <Rules picker={picker} />}</OfWorkspace>
    </>
  )
}

function Rules({ picker }: { picker: ReactNode }) {
  const { t, i18n } = useTranslation()
  const client = useQueryClient()
  const { mayWrite } = useRights()
  const { cards } = useLive('cards')
  const [changes, setChanges] = useState<Record<string, unknown>>({})
  const [error, setError] = useState('')
  const rules = useQuery({ queryKey: ['rules', i18n.language], queryFn: ({ signal }) => ask<Told>('/api/v1/rules', { signal }) })
  const values = rules.data?.data.values ?? {}
  const present = (key: string): unknown => (key in changes ? changes[key] : valueAt(values, key))
  const set = (key: string, value: unknown): void => {
    const next = { ...changes, [key]: value }
    if (JSON.stringify(value) === JSON.stringify(valueAt(values, key))) delete next[key]
    setChanges(next)
  }
  const count = Object.keys(changes).length
  const saveCommand = callCommand('PUT', wholeAddress('/api/config'), nested(changes))
  const save = async (): Promise<void> => {
    try {
      await ask('/api/config', { method: 'PUT', body: nested(changes), etag: rules.data?.etag })
      setChanges({})
      setError('')
      say({ text: t('rules.saved'), command: saveCommand })
    } catch (problem) {
      if (problem instanceof CallError && problem.status === 412) setError(t('rules.conflict'))
      else setError(problem instanceof Error ? problem.message : String(problem))
    }
    await client.invalidateQueries({ queryKey: ['rules'] })
  }
  const left = number(present('gpu_left')) ?? 0
  const problem = rules.error
  const broken = rules.data?.data.flaws[0] // who asks what such a file means is refused
  const effects = useEffects(changes, rules.data !== undefined && (!broken || count > 0))
  const told = effects.data?.after
  const shownCards = cards && cards.gpus.length > 0 && told ? cards.gpus : null
  return (
    <div className="rules">
      <div>
        <section className="panel" style={{ flex: 'none' }}>
          <header>
            <h2>{t('page.rules')}</h2>
            <code className="t2 clip grow">{rules.data?.data.path}</code>
            {picker}
          </header>
          {problem && <p className="note fail">{problem.message}</p>}
          {rules.data?.data.flaws.map((flaw) => (
            <p key={flaw.text} className="rule fail">
              {flaw.line ? t('tasks.line', { line: flaw.line }) : ''} {flaw.text}
            </p>
          ))}
          {rules.data &&
            grouped(keysOf(values)).map(([name, keys]) => (
              <div key={name}>
                <h3 className="rulehead">{t(`rules.group.${name}`)}</h3>
                {keys.map((key) => (
                  <Rule
                    key={key}
                    name={key}
                    value={present(key)}
                    before={valueAt(values, key)}
                    disabled={!mayWrite || rules.data.data.fixed.includes(key)}
                    onChange={(value) => set(key, value)}
                  />
                ))}
              </div>
            ))}
        </section>
      </div>
      <div>
        {shownCards && told && <Formula cards={shownCards} told={told} left={left} />}
        {rules.data && !told && !effects.isLoading && (
          <p className="panel note">{effects.error?.message ?? broken?.text ?? t('rules.nocount')}</p>
        )}
        {effects.data && count > 0 && <Effect told={effects.data} />}
        {shownCards && told && (
          <WhatIf
            cards={shownCards}
            told={told}
            left={left}
            most={number(present('max_gpu'))}
            least={number(present('min_gpu')) ?? USUAL_LEAST}
            disabled={!mayWrite}
            onChoose={(left, most) => {
              const next = { ...changes, gpu_left: left, max_gpu: most }
              setChanges(Object.fromEntries(Object.entries(next).filter(([key, value]) => value !== valueAt(values, key))))
            }}
          />
        )}
        <div className="bar">
          {error ? (
            <span className="fail" role="alert">
              {error}
            </span>
          ) : (
            <span style={{ flex: '1 1 240px' }}>
              <b className={count ? '' : 't2'}>{t('rules.changes', { count })}</b> <span className="t2">{t('rules.atonce')}</span>
            </span>
          )}
          <span className="grow" />
          {count > 0 && <Command text={saveCommand} />}
          <button type="button" className="btn" disabled={!count} onClick={() => setChanges({})}>
            {t('rules.undo')}
          </button>
          <button
            type="button"
            className="btn primary"
            disabled={!count || !mayWrite}
            title={mayWrite ? undefined : t('shell.readonly')}
            onClick={() => void save()}
          >
            <Icon name="tick" />
            {t('rules.save')}
          </button>
        </div>
      </div>
    </div>
  )
}

const shown = (value: unknown): string =>
  value === null || value === undefined ? '–' : Array.isArray(value) ? value.join(', ') : String(value)

interface RuleProps {
  name: string
  value: unknown
  before: unknown
  disabled: boolean
  onChange: (value: unknown) => void
}

function Rule({ name, value, before, disabled, onChange }: RuleProps) {
  const { t } = useTranslation()
  const label = t(`rules.name.${name.replace('.', '_')}`, { defaultValue: name })
  const changed = JSON.stringify(value) !== JSON.stringify(before)
  return (
    <div className={`rule${changed ? ' changed' : ''}`}>
      <div className="what">
        {label} {label !== name && <code>{name}</code>}
        <p>
          {t(`rules.what.${name.replace('.', '_')}`, { defaultValue: '' })}{' '}
          {changed && (
            <b className="strong">
              {shown(before)} → {shown(value)}
            </b>
          )}
        </p>
      </div>
      <RuleControl name={name} label={label} value={value} disabled={disabled} onChange={onChange} />
    </div>
  )
}

function RuleControl({ name, label, value, disabled, onChange }: Omit<RuleProps, 'before'> & { label: string }) {
  const kind = control(name, value, useFields()?.rules)
  if (kind === 'switch') return <Switch label={label} checked={value === true} disabled={disabled} onChange={onChange} />
  if (kind === 'number')
    return (
      <Stepper label={label} value={typeof value === 'number' ? value : null} optional disabled={disabled} onChange={onChange} />
    )
  if (kind === 'list') return <ListField label={label} value={value} disabled={disabled} onChange={onChange} />
  const text = value === null || value === undefined ? '' : String(value)
  return (
    <span className="field rulefield">
      {kind === 'text' ? (
        <input
          className="mono"
          aria-label={label}
          disabled={disabled}
          value={text}
          placeholder="null"
          onChange={(event) => onChange(event.target.value || null)}
        />
      ) : (
        <select aria-label={label} disabled={disabled} value={text} onChange={(event) => onChange(event.target.value || null)}>
          {kind.map((word) => (
            <option key={word} value={word}>
              {word || '–'}
            </option>
          ))}
        </select>
      )}
    </span>
  )
}

function ListField({
  label,
  value,
  disabled,
  onChange,
}: {
  label: string
  value: unknown
  disabled: boolean
  onChange: (value: unknown) => void
}) {
  const [text, setText] = useState<string | null>(null)
  const whole = (part: string): number => Number(part.trim())
  return (
    <span className="field rulefield">
      <input
        className="mono"
        aria-label={label}
        disabled={disabled}
        value={text ?? shown(value)}
        onChange={(event) => {
          setText(event.target.value)
          const parts = event.target.value.split(',').filter((part) => part.trim() !== '')
          if (parts.every((part) => Number.isInteger(whole(part)))) onChange(parts.map(whole))
        }}
        onBlur={() => setText(null)}
      />
    </span>
  )
}
