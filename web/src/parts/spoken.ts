/** How long, in a sentence: `14 min`, `3 h`. Figures stay one number, so both languages put it where they like. */
export function spoken(seconds: number, t: (key: string, values: { count: number }) => string): string {
  const s = Math.max(0, Math.floor(seconds))
  if (s < 60) return t('long.seconds', { count: s })
  if (s < 3600) return t('long.minutes', { count: Math.floor(s / 60) })
  if (s < 48 * 3600) return t('long.hours', { count: Math.floor(s / 3600) })
  return t('long.days', { count: Math.floor(s / 86400) })
}
