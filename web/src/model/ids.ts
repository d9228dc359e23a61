// Numbers of jobs, as the command line takes them and as people read them.

function ranges(ids: readonly number[]): [number, number][] {
  const sorted = [...new Set(ids)].sort((a, b) => a - b)
  const found: [number, number][] = []
  for (const id of sorted) {
    const last = found.at(-1)
    if (last && id === last[1] + 1) last[1] = id
    else found.push([id, id])
  }
  return found
}

/** `#103 #108–#110` */
export const shownIds = (ids: readonly number[]): string =>
  ranges(ids)
    .map(([a, b]) => (a === b ? `#${a}` : b === a + 1 ? `#${a} #${b}` : `#${a}–#${b}`))
    .join(' ')

/** `103 108-110`, for a command line */
export const typedIds = (ids: readonly number[]): string =>
  ranges(ids)
    .map(([a, b]) => (a === b ? `${a}` : b === a + 1 ? `${a} ${b}` : `${a}-${b}`))
    .join(' ')
