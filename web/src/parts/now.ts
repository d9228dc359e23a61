import { useEffect, useState } from 'react'

/** The present, once a second, while the tab is seen. */
export function useNow(every = 1000): number {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') setNow(Date.now())
    }, every)
    return () => clearInterval(timer)
  }, [every])
  return now
}
