// Figures as people read them. The same in both languages, so never through the translator.

export const gib = (mib: number): string => (mib / 1024).toFixed(1)

export function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  if (bytes < 1e6) return `${Math.round(bytes / 1e3)} kB`
  if (bytes < 1e9) return `${(bytes / 1e6).toFixed(1)} MB`
  return `${(bytes / 1e9).toFixed(1)} GB`
}

/** `48s`, `14m`, `1h04m`, `3d02h`. */
export function span(seconds: number): string {
  const s = Math.max(0, Math.floor(seconds))
  if (s < 60) return `${s}s`
  const m = Math.floor(s / 60)
  if (m < 60) return `${m}m`
  const h = Math.floor(m / 60)
  if (h < 24) return `${h}h${String(m % 60).padStart(2, '0')}m`
  return `${Math.floor(h / 24)}d${String(h % 24).padStart(2, '0')}h`
}

const two = (n: number): string => String(n).padStart(2, '0')

/** Local time of an instant in milliseconds, 24 h; with the date if it is not of today. */
export function clock(ms: number, now: number = Date.now(), seconds = false): string {
  const at = new Date(ms)
  const time = `${two(at.getHours())}:${two(at.getMinutes())}${seconds ? `:${two(at.getSeconds())}` : ''}`
  return at.toDateString() === new Date(now).toDateString() ? time : `${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}`
}

/** The last words of a card's full name: `NVIDIA GeForce RTX 4090` → `RTX 4090`. */
export const model = (name: string): string => name.replace(/^(NVIDIA|Tesla|GeForce|\s)+/gi, '') || name
