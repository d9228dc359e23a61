import { useTranslation } from 'react-i18next'
import type { Draft } from './draft'

const FIRST = 200

/** What would be queued, in order. */
export function Queued({ draft, flaws }: { draft: Draft; flaws: number }) {
  const { t } = useTranslation()
  const tasks = draft.queues.flatMap((queue) => queue.processes.map((process) => ({ queue: queue.id, ...process })))
  return (
    <section className="panel queued" aria-label={t('tasks.preview')}>
      <header>
        <h2>{t('tasks.preview')}</h2>
        {flaws > 0 ? (
          <span className="pill fail">{t('tasks.nothing', { count: flaws })}</span>
        ) : (
          <span className="pill">{tasks.length}</span>
        )}
      </header>
      <div className="scroll">
        <table className="list">
          <tbody>
            {tasks.slice(0, FIRST).map((task) => (
              <tr key={`${task.queue}.${task.id}`}>
                <td className="mono t3">
                  {task.queue}.{task.id}
                </td>
                <td className="mono clip" title={task.commands.join('\n')}>
                  {task.commands.at(-1)}
                </td>
                <td className="num">
                  {task.gpu_count > 1 && `${task.gpu_count} × `}
                  {task.memory} GB
                </td>
                <td className="t2">
                  {task.id === 1 ? t('tasks.first') : t('tasks.after', { what: `${task.queue}.${task.id - 1}` })}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {tasks.length === 0 && <p className="note">{t('tasks.empty')}</p>}
      </div>
    </section>
  )
}
