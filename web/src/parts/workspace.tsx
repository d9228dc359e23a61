// Pages that speak of files need a workspace: which one, or what to do without one.
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { setWorkspace } from '../api/call'
import { useRights, useWorkspaces } from '../api/hooks'
import { Command } from './controls'

let chosen: string | null = null

/** What is inside only where there is a workspace; it is made anew when another one is chosen. */
export function OfWorkspace({ children }: { children: (picker: ReactNode, path: string) => ReactNode }) {
  const { t } = useTranslation()
  const { mayWrite } = useRights()
  return mayWrite ? <Chosen>{children}</Chosen> : <p className="panel note">{t('workspace.readonly')}</p>
}

function Chosen({ children }: { children: (picker: ReactNode, path: string) => ReactNode }) {
  const { t } = useTranslation()
  const client = useQueryClient()
  const known = useWorkspaces()
  const [path, setPath] = useState(chosen)
  if (!known) return null
  const first = known[0]
  if (first === undefined) {
    return (
      <section className="panel note">
        <p className="strong">{t('workspace.none')}</p>
        <p>{t('workspace.how')}</p>
        <Command text="jostle up DIR" />
      </section>
    )
  }
  const choose = (next: string): void => {
    chosen = next
    setWorkspace(next)
    setPath(next)
    for (const name of ['configs', 'bindings', 'rules', 'settings']) client.removeQueries({ queryKey: [name] })
  }
  const picker = (
    <label className="field" title={path ?? first.path}>
      <span className="sr">{t('workspace.which')}</span>
      <select value={path ?? first.path} onChange={(event) => choose(event.target.value)}>
        {known.map((one) => (
          <option key={one.path} value={one.path}>
            {one.name}
          </option>
        ))}
      </select>
    </label>
  )
  return <Inside key={path}>{children(picker, path ?? first.path)}</Inside>
}

const Inside = ({ children }: { children: ReactNode }) => children
