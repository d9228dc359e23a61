import type { Reason } from '../api/types'

/** A reason in its sentence; what decides is set off, where its template marks it. */
export function Why({ reason }: { reason: Reason }) {
  const text = reason.text ?? reason.code
  if (!reason.decides) return text
  const [from, to] = reason.decides
  return (
    <>
      {text.slice(0, from)}
      <b className="strong">{text.slice(from, to)}</b>
      {text.slice(to)}
    </>
  )
}
