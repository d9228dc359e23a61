import { useTranslation } from 'react-i18next'
import { shown } from '../model/ansi'
import { Icon } from '../parts/icons'
import type { Draft } from './draft'
import type { TaskOutlook, TasksOutlook } from './outlook'

const FIRST = 200

interface QueuedProps {
  draft: Draft
  flaws: number
  outlook: TasksOutlook | undefined
}

/** What would be queued, in order, and what would become of it now. */
export function Queued({ draft, flaws, outlook }: QueuedProps) {
  const { t } = useTranslation()
  const tasks = draft.queues.flatMap((queue) => queue.processes.map((process) => ({ queue: queue.id, ...process })))
  const broken = draft.preview?.broken ?? []
  const told = byPlace(outlook?.tasks ?? [])
  const brief = (text: string): string => {
    const seen = shown(text)
    return seen.more ? `${t('tasks.cut', { n: seen.more })} ${seen.text}` : seen.text
  }
  return (
    <section className="panel queued" aria-label={t('tasks.preview')}>
      <header>
        <h2>{t('tasks.preview')}</h2>
        {flaws > 0 ? (
          <>
            <span className="pill fail">{t('tasks.nothing', { count: flaws })}</span>
            <span className="t2 clip">{t('tasks.asif')}</span>
          </>
        ) : (
          <span className="pill">{tasks.length}</span>
        )}
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached */}
      <div className="scroll" tabIndex={0}>
        {outlook?.never.map((line) => (
          <p key={line} className="message fail row">
            <Icon name="warn" size={12} />
            <span>{line}</span>
          </p>
        ))}
        <table className="list">
          <tbody>
            {tasks.slice(0, FIRST).map((task) => {
              const would = told.get(`${task.queue}.${task.id}`)
              return (
                <tr key={`${task.queue}.${task.id}`}>
                  <td className="mono t3">
                    {task.queue}.{task.id}
                  </td>
                  <td className="mono clip" title={brief(task.commands.join('\n'))}>
                    {brief(task.commands.at(-1) ?? '')}
                  </td>
                  <td className="num">
                    {task.gpu_count > 1 && `${task.gpu_count} × `}
                    {task.memory} GB
                  </td>
                  <td className={would?.starts ? 'free strong' : 't2'}>
                    {task.id > 1 ? t('tasks.after', { what: `${task.queue}.${task.id - 1}` }) : (would?.text ?? t('tasks.first'))}
                  </td>
                </tr>
              )
            })}
            {broken.map((block) => (
              <tr key={`line ${block.line}`}>
                <td className="mono t3">{block.queue ?? '?'}</td>
                <td className="mono clip" title={brief(block.text)}>
                  {brief(block.text.split('\n').find((line) => line.trim() && !line.startsWith('#')) ?? '')}
                </td>
                <td className="num">?</td>
                <td className="fail">{t('tasks.online', { line: block.flaws[0]?.line ?? block.line })}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {outlook && outlook.more > 0 && <p className="note">{t('tasks.notlooked', { count: outlook.more })}</p>}
        {tasks.length === 0 && broken.length === 0 && <p className="note">{t('tasks.empty')}</p>}
      </div>
    </section>
  )
}

/** By queue and place in it, as the form counts them. */
function byPlace(tasks: readonly TaskOutlook[]): Map<string, TaskOutlook> {
  const counts = new Map<number, number>()
  return new Map(
    tasks.map((task) => {
      const n = (counts.get(task.queue) ?? 0) + 1
      counts.set(task.queue, n)
      return [`${task.queue}.${n}`, task]
    }),
  )
}
