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

export function changes(lines: readonly string[]): { plus: number; minus: number } {
  return {
    plus: lines.filter((line) => line.startsWith('+') && !line.startsWith('+++')).length,
    minus: lines.filter((line) => line.startsWith('-') && !line.startsWith('---')).length,
  }
}
