// Whether the page is narrow, as shell.css has it: what is touched is as high as a finger there.
import { useSyncExternalStore } from 'react'

const NARROW = '(max-width: 900px)'

function listen(changed: () => void): () => void {
  const media = window.matchMedia(NARROW)
  media.addEventListener('change', changed)
  return () => media.removeEventListener('change', changed)
}

export const useNarrow = (): boolean => useSyncExternalStore(listen, () => window.matchMedia(NARROW).matches)
