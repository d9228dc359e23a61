// Letters are shortcuts only while no field has the focus and no dialog is open. What appeared last is asked first.
import { useEffect, useRef } from 'react'
import type { Key } from './keymap'

const PRESSED = /^(checkbox|radio|button|submit)$/

export function typing(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false
  if (target instanceof HTMLInputElement) return !PRESSED.test(target.type)
  return target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName)
}

/** Space and Enter belong to what has the focus, if it can be pressed. */
function presses(event: KeyboardEvent): boolean {
  const own = event.key === ' ' || event.key === 'Enter'
  return own && event.target instanceof Element && event.target.matches('button, a, input, summary')
}

/** By what the key types; a second letter after `g` is named `g x`, one with Alt `Alt x`. An answer of `false` leaves it to others. */
export type Keys = { [key in Key]?: () => unknown }

const layers: { current: Keys }[] = []
let lead = ''

function down(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.defaultPrevented) return
  if (typing(event.target) || presses(event) || document.querySelector('dialog[open]')) return
  const name = event.altKey ? `Alt ${event.key}` : lead ? `${lead} ${event.key}` : event.key
  lead = event.key === 'g' && !lead ? 'g' : ''
  for (const layer of [...layers].reverse()) {
    const act = layer.current[name as Key]
    if (act && act() !== false) {
      event.preventDefault()
      return
    }
  }
}

export function useKeys(keys: Keys): void {
  const layer = useRef(keys)
  layer.current = keys
  useEffect(() => {
    if (layers.length === 0) window.addEventListener('keydown', down)
    layers.push(layer)
    return () => {
      layers.splice(layers.indexOf(layer), 1)
      if (layers.length === 0) window.removeEventListener('keydown', down)
    }
  }, [])
}
