import { type DragEvent, type KeyboardEvent, useState } from 'react'
import { useTranslation } from 'react-i18next'
import type { BrokenBlock, Mode, Process, Queue } from '../api/types'
import { added, changed, moved, nudged, removed, type Spot } from '../model/queues'
import { Icon } from '../parts/icons'
import { BrokenRow } from './broken'
import { CommandText } from './commandtext'

interface FormProps {
  queues: Queue[]
  broken: BrokenBlock[]
  mode: Mode
  readOnly: boolean
  bindings: Record<string, { log_path: string }>
  configIndex: number
  onChange: (queues: Queue[]) => void
  onBind: (queue: number, process: number) => void
  onMend: (block: BrokenBlock, text: string) => void
  onGo: (line: number) => void
}

/** Config → queue → process. Drag by the grip, or focus it and press Alt and an arrow. */
export function QueueForm(props: FormProps) {
  const { queues, broken, mode, readOnly, bindings, configIndex, onChange, onBind, onMend, onGo } = props
  const { t } = useTranslation()
  const [dragged, setDragged] = useState<Spot | null>(null)
  const [over, setOver] = useState('')
  const drop = (to: Spot): void => {
    if (dragged) onChange(moved(queues, dragged, to))
    setDragged(null)
    setOver('')
  }
  const row = (block: BrokenBlock) => (
    <BrokenRow key={block.line} block={block} readOnly={readOnly} onChange={(text) => onMend(block, text)} onGo={onGo} />
  )
  const homeless = broken.filter((block) => !queues.some((queue) => queue.id === block.queue))
  return (
    <>
      {queues.map((queue, q) => (
        <section key={queue.id} className="panel queue" aria-label={t('tasks.queue', { id: queue.id })}>
          {/* biome-ignore lint/a11y/noStaticElementInteractions: by keyboard the grip moves a process here, too */}
          <header onDragOver={(event) => event.preventDefault()} onDrop={() => drop({ queue: q, process: 0 })}>
            <h2>{t('tasks.queue', { id: queue.id })}</h2>
            <span className="t2">{t('tasks.processes', { count: queue.processes.length })}</span>
            <span className="grow" />
            <button
              type="button"
              className="btn small quiet"
              disabled={readOnly}
              onClick={() => onChange(added(queues, q, mode))}
            >
              <Icon name="plus" size={12} />
              {t('tasks.process')}
            </button>
          </header>
          {queue.processes.map((process, p) => (
            <ProcessRow
              // biome-ignore lint/suspicious/noArrayIndexKey: its place is what names it
              key={p}
              process={process}
              mode={mode}
              readOnly={readOnly}
              bound={bindings[`${mode}_${configIndex}_${queue.id}_${p}`]?.log_path}
              target={over === `${q}.${p}`}
              onBind={() => onBind(Number(queue.id), p)}
              onChange={(next) => onChange(changed(queues, { queue: q, process: p }, next))}
              onRemove={() => onChange(removed(queues, { queue: q, process: p }))}
              onNudge={(by) => onChange(nudged(queues, { queue: q, process: p }, by))}
              onDragStart={() => setDragged({ queue: q, process: p })}
              onDragOver={(event) => {
                event.preventDefault()
                setOver(`${q}.${p}`)
              }}
              onDrop={() => drop({ queue: q, process: p })}
            />
          ))}
          {broken.filter((block) => block.queue === queue.id).map(row)}
        </section>
      ))}
      {[...new Set(homeless.map((block) => block.queue))].map((queue) => {
        const name = queue === null ? t('tasks.noqueue') : t('tasks.queue', { id: queue })
        return (
          <section key={queue} className="panel queue" aria-label={name}>
            <header>
              <h2>{name}</h2>
            </header>
            {homeless.filter((block) => block.queue === queue).map(row)}
          </section>
        )
      })}
      <div className="row" style={{ flexWrap: 'wrap' }}>
        <button type="button" className="btn" disabled={readOnly} onClick={() => onChange(added(queues, null, mode))}>
          <Icon name="plus" size={12} />
          {t('tasks.addqueue')}
        </button>
        {queues.length > 0 && <span className="t2">{t('tasks.reorder')}</span>}
      </div>
    </>
  )
}

interface RowProps {
  process: Process
  mode: Mode
  readOnly: boolean
  bound: string | undefined
  target: boolean
  onBind: () => void
  onChange: (next: Partial<Process>) => void
  onRemove: () => void
  onNudge: (by: 1 | -1) => void
  onDragStart: () => void
  onDragOver: (event: DragEvent) => void
  onDrop: () => void
}

function ProcessRow({
  process,
  mode,
  readOnly,
  bound,
  target,
  onBind,
  onChange,
  onRemove,
  onNudge,
  onDragStart,
  onDragOver,
  onDrop,
}: RowProps) {
  const { t } = useTranslation()
  const [memory, setMemory] = useState<string | null>(null)
  const bad = memory !== null && !(Number(memory) >= 0 && memory.trim() !== '')
  const nudge = (event: KeyboardEvent): void => {
    if (!event.altKey || (event.key !== 'ArrowUp' && event.key !== 'ArrowDown')) return
    event.preventDefault()
    onNudge(event.key === 'ArrowDown' ? 1 : -1)
  }
  return (
    <section
      className={`proc${target ? ' drop' : ''}`}
      aria-label={t('tasks.processn', { id: process.id })}
      onDragOver={onDragOver}
      onDrop={onDrop}
    >
      <button
        type="button"
        className="grip"
        draggable={!readOnly}
        aria-label={t('tasks.move', { id: process.id })}
        title={t('tasks.reorder')}
        disabled={readOnly}
        onDragStart={onDragStart}
        onKeyDown={nudge}
      >
        <Icon name="grip" />
      </button>
      <span className="t2">{process.id}</span>
      <span className="grow">
        <CommandText
          aria-label={t('tasks.commands', { id: process.id })}
          readOnly={readOnly}
          text={process.commands.join('\n')}
          placeholder="bash {work_dir}/train.sh"
          onType={(text) => onChange({ commands: text.split('\n') })}
        />
        <button type="button" className="link" disabled={readOnly} onClick={onBind}>
          <Icon name="log" size={11} /> {bound ? t('tasks.bound', { path: bound }) : t('tasks.bind')}
        </button>
      </span>
      <span className="row">
        {mode === 'multi' && (
          <span className="field">
            <input
              inputMode="numeric"
              aria-label={t('tasks.gpus', { id: process.id })}
              readOnly={readOnly}
              value={process.gpu_count}
              onChange={(event) => /^\d+$/.test(event.target.value) && onChange({ gpu_count: Number(event.target.value) })}
            />
            <span className="t3">GPU</span>
          </span>
        )}
        <span className={`field${bad ? ' bad' : ''}`}>
          <input
            inputMode="decimal"
            aria-label={t('tasks.memory', { id: process.id })}
            aria-invalid={bad}
            readOnly={readOnly}
            value={memory ?? process.memory}
            onChange={(event) => {
              const text = event.target.value
              setMemory(text)
              if (text.trim() !== '' && Number(text) >= 0) onChange({ memory: Number(text) })
            }}
            onBlur={() => setMemory(null)}
          />
          <span className="t3">GB</span>
        </span>
      </span>
      <button
        type="button"
        className="icon"
        aria-label={t('tasks.remove', { id: process.id })}
        title={t('tasks.remove', { id: process.id })}
        disabled={readOnly}
        onClick={onRemove}
      >
        <Icon name="cross" size={12} />
      </button>
      {bad && <span className="flaw">{t('tasks.badmemory')}</span>}
    </section>
  )
}
