import { type RefObject, useEffect, useLayoutEffect, useState } from 'react'

const NEAR = 2 // px that a row may be cut off by

/** The rows of a box (`data-row`) whose end lies below what is seen of it. */
export function useBelow(box: RefObject<HTMLElement | null>): ReadonlySet<string> {
  const [below, setBelow] = useState<ReadonlySet<string>>(new Set())
  const look = (): void => {
    const div = box.current
    if (!div) return
    const end = div.getBoundingClientRect().bottom + NEAR
    const rows = [...div.querySelectorAll<HTMLElement>('[data-row]')].filter((row) => row.getBoundingClientRect().bottom > end)
    const found = new Set(rows.map((row) => row.dataset.row ?? ''))
    setBelow((known) => (known.size === found.size && [...found].every((row) => known.has(row)) ? known : found))
  }
  useLayoutEffect(look) // rows come, go and grow with every event
  useEffect(() => {
    const div = box.current
    if (!div) return
    const watch = new ResizeObserver(look)
    watch.observe(div)
    div.addEventListener('scroll', look, { passive: true })
    return () => {
      watch.disconnect()
      div.removeEventListener('scroll', look)
    }
  })
  return below
}
