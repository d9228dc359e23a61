// Of a long list of rows of one height, those that can be seen: a few at a time, so that scrolling renders seldom and little.
import { type RefObject, useEffect, useState } from 'react'

const STEP = 8 // rows that scroll by before others are rendered

export interface Seen {
  first: number
  last: number // beyond the last
}

/** The rows to render for a place in the list; always some more than fit, in whole steps, and wherever it stands as many. */
export function seenAt(top: number, height: number, row: number, count: number): Seen {
  const first = Math.max(0, (Math.floor(top / row / STEP) - 1) * STEP)
  const last = Math.min(count, first + (Math.ceil(height / row / STEP) + 3) * STEP)
  return { first: Math.min(first, Math.max(0, last - 1)), last }
}

export function useWindow(place: RefObject<HTMLElement | null>, row: number, count: number): Seen {
  const [seen, setSeen] = useState<Seen>({ first: 0, last: Math.min(count, 4 * STEP) })
  useEffect(() => {
    const element = place.current
    if (!element) return
    const look = (): void => {
      const next = seenAt(element.scrollTop, element.clientHeight, row, count)
      setSeen((now) => (now.first === next.first && now.last === next.last ? now : next))
    }
    look()
    const size = new ResizeObserver(look)
    size.observe(element)
    element.addEventListener('scroll', look, { passive: true })
    return () => {
      size.disconnect()
      element.removeEventListener('scroll', look)
    }
  }, [place, row, count])
  return seen
}

/** Scrolls as little as is needed to have a row in sight. */
export function showRow(element: HTMLElement, at: number, row: number): void {
  if (at * row < element.scrollTop) element.scrollTop = at * row
  else if ((at + 1) * row > element.scrollTop + element.clientHeight) element.scrollTop = (at + 1) * row - element.clientHeight
}

/** A name for the element that shows a row: those that scroll out of sight are used again for those that come into it. */
export const slot = (at: number, { first, last }: Seen): number => at % (last - first)
