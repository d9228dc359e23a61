// The configs of a workspace on the left: which is edited, which runs, a new one.
import type { ReactNode } from 'react'
import { useTranslation } from 'react-i18next'
import { wholeAddress } from '../api/call'
import { useMayNot } from '../api/hooks'
import type { Config, Mode, Scheduler } from '../api/types'
import { callCommand } from '../model/command'
import { Act } from '../parts/act'
import { CopyButton, Segmented } from '../parts/controls'
import { Icon } from '../parts/icons'
import { Pill } from '../parts/pill'

export const runsConfig = (schedulers: readonly Scheduler[], mode: Mode, index: number): Scheduler | undefined =>
  schedulers.find((one) => one.mode === mode && one.config_index === index && one.state !== 'completed')

interface ConfigsProps {
  mode: Mode
  index: number
  configs: Config[]
  schedulers: Scheduler[]
  flaws: number // of the one that is edited
  path: string | undefined
  picker: ReactNode
  error: string
  onMode: (mode: Mode) => void
  onPick: (index: number) => void
  onNew: () => void
  onDelete: () => void
}

export function Configs(props: ConfigsProps) {
  const { mode, index, configs, schedulers, flaws, path, picker, error, onMode, onPick, onNew, onDelete } = props
  const { t } = useTranslation()
  const blocked = useMayNot()
  return (
    <section className="panel" aria-label={t('tasks.configs')}>
      <div style={{ padding: 6 }}>
        <Segmented
          wide
          label={t('tasks.mode')}
          value={mode}
          choices={[
            { value: 'single', label: t('mode.single') },
            { value: 'multi', label: t('mode.multi') },
          ]}
          onChange={onMode}
        />
      </div>
      <div className="scroll">
        {error && <p className="note fail">{error}</p>}
        {configs.map((config) => (
          <button
            key={config.index}
            type="button"
            className="config"
            aria-current={config.index === index}
            onClick={() => onPick(config.index)}
          >
            <span className="grow">
              {t('tasks.config', { n: config.index + 1 })}
              <code className="clip">{config.file_name}</code>
            </span>
            {runsConfig(schedulers, mode, config.index) ? (
              <Pill look="running" />
            ) : config.index === index && flaws > 0 ? (
              <span className="pill fail">{t('tasks.flaws', { count: flaws })}</span>
            ) : (
              !config.exists && <span className="pill">{t('tasks.missing')}</span>
            )}
          </button>
        ))}
        <div className="row">
          <button type="button" className="config" disabled={blocked !== undefined} title={blocked} onClick={onNew}>
            <Icon name="plus" size={12} />
            {t('tasks.new')}
          </button>
          <CopyButton text={newCommand(mode)} label={t('control.copycommand')} />
        </div>
      </div>
      <footer style={{ flexDirection: 'column', alignItems: 'stretch', gap: 4 }}>
        <span className="t2">{t('workspace.which')}</span>
        {picker}
        <span className="t2">{t('tasks.file')}</span>
        <code className="clip" title={path}>
          {path ?? '–'}
        </code>
        {index > 0 && (
          <Act
            look="small warn"
            blocked={blocked}
            disabled={runsConfig(schedulers, mode, index) !== undefined}
            command={deleteCommand(mode, index)}
            onDo={onDelete}
          >
            {t('tasks.delete')}
          </Act>
        )}
      </footer>
    </section>
  )
}

export const deleteCommand = (mode: Mode, index: number): string =>
  callCommand('DELETE', wholeAddress(`/api/commands/${mode}/${index}`))

export const newCommand = (mode: Mode): string => callCommand('POST', wholeAddress(`/api/commands/${mode}/new`))
