// Cards that are asked for under a name: no program is needed yet.
import { type FormEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { useBlocked } from '../api/hooks'
import { allocCommand, EMPTY_ALLOCATION, type NewAllocation } from '../model/command'
import { WouldBecome } from '../newjob/outlook'
import { useSettled } from '../newjob/settled'
import { Command } from '../parts/controls'
import { Icon } from '../parts/icons'
import { allocBody, useHolding } from './data'

const FIELDS = [
  ['name', 'train'],
  ['gpus', '1-4'],
  ['memory', ''],
  ['time', '2h'],
  ['idle', '30m'],
] as const

export function NewAllocationForm() {
  const { t } = useTranslation()
  const blocked = useBlocked()
  const { alloc } = useHolding()
  const [given, setGiven] = useState<NewAllocation>(EMPTY_ALLOCATION)
  const settled = useSettled(given)
  const [error, setError] = useState('')
  const [busy, setBusy] = useState(false)
  const send = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    try {
      await alloc(given)
      setGiven(EMPTY_ALLOCATION)
      setError('')
    } catch (problem) {
      setError(problem instanceof Error ? problem.message : String(problem))
    }
    setBusy(false)
  }
  return (
    <section className="panel" aria-label={t('hold.new')}>
      <header>
        <h2>{t('hold.new')}</h2>
      </header>
      <form className="newalloc" onSubmit={(event) => void send(event)}>
        <div className="formrow">
          {FIELDS.map(([name, hint]) => (
            <div key={name} style={{ display: 'contents' }}>
              <label htmlFor={`alloc-${name}`}>{t(`hold.field.${name}`)}</label>
              <span className="field">
                <input
                  id={`alloc-${name}`}
                  placeholder={name === 'memory' ? t('new.whole') : hint}
                  inputMode={name === 'memory' ? 'decimal' : undefined}
                  value={given[name]}
                  onChange={(event) => setGiven({ ...given, [name]: event.target.value })}
                />
                {name === 'memory' && <span className="t3">GiB</span>}
              </span>
            </div>
          ))}
        </div>
        {blocked === undefined && settled.name.trim() && (
          <WouldBecome path="/api/v1/alloc" body={allocBody(settled)} gpus={Number.parseInt(settled.gpus, 10) || 1} />
        )}
        <p className="fail" role="alert">
          {error}
        </p>
        <div className="row">
          <span className="grow">{given.name.trim() && <Command text={allocCommand(given)} />}</span>
          <button
            type="submit"
            className="btn primary"
            disabled={blocked !== undefined || busy || !given.name.trim()}
            title={blocked}
          >
            <Icon name="lock" size={12} />
            {t('hold.ask')}
          </button>
        </div>
      </form>
    </section>
  )
}
