import { useTranslation } from 'react-i18next'

/** Lines of a unified diff; `changes` counts them. */
export function Diff({ lines }: { lines: string[] }) {
  return (
    <pre className="diff">
      {lines.map((line, i) => (
        <span
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name
          key={i}
          className={
            line.startsWith('@@') || line.startsWith('---') || line.startsWith('+++')
              ? 'at'
              : line.startsWith('+')
                ? 'add'
                : line.startsWith('-')
                  ? 'del'
                  : ''
          }
        >
          {line || ' '}
        </span>
      ))}
    </pre>
  )
}

function changes(lines: readonly string[]): { plus: number; minus: number } {
  return {
    plus: lines.filter((line) => line.startsWith('+') && !line.startsWith('+++')).length,
    minus: lines.filter((line) => line.startsWith('-') && !line.startsWith('---')).length,
  }
}

export function DiffButton({ draft, onOpen }: { draft: { preview: { diff: string[] } | null }; onOpen: () => void }) {
  const { t } = useTranslation()
  const { plus, minus } = changes(draft.preview?.diff ?? [])
  if (plus + minus === 0) return null
  return (
    <button type="button" className="btn small" onClick={onOpen}>
      {t('tasks.diff')} <span className="free">+{plus}</span> <span className="fail">−{minus}</span>
    </button>
  )
}
