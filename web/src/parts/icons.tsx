// Our own small icons: strokes on a grid of 16, drawn in the text's colour. Words stand beside them or in a label.
const PATHS = {
  gpu: 'M2.5 4.5h11v8h-11zM5 12.5v2M8 12.5v2M6 7h4v3H6zM11 2.5h-6v2',
  tasks: 'M2.5 4l3.5 3.5L2.5 11M8 12h5.5',
  state: 'M1.5 8.5h3l2-5 3 9 2-4h3',
  experiments: 'M2.5 2.5v11h11M6 10v.01M8 6.5v.01M11 8v.01M12.5 4v.01',
  rules: 'M2 5h6M11 5h3M2 11h3M8 11h6M9.5 3v4M6.5 9v4',
  settings:
    'M8 5.7a2.3 2.3 0 1 0 0 4.6a2.3 2.3 0 1 0 0-4.6M8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M3.4 12.6l1.4-1.4M11.2 4.8l1.4-1.4',
  find: 'M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9M10.5 10.5l3.5 3.5',
  plus: 'M8 3v10M3 8h10',
  copy: 'M5.5 5.5h8v8h-8zM3 10.5v-8h8',
  tick: 'M3 8.5l3.5 3.5L13 4.5',
  cross: 'M4 4l8 8M12 4l-8 8',
  sun: 'M8 5a3 3 0 1 0 0 6a3 3 0 1 0 0-6M8 1v2M8 13v2M1 8h2M13 8h2M3 3l1.4 1.4M11.6 11.6L13 13M3 13l1.4-1.4M11.6 4.4L13 3',
  moon: 'M13 9.5A5.5 5.5 0 1 1 6.5 3a4.5 4.5 0 0 0 6.5 6.5z',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  play: 'M5 3.5v9l7-4.5z',
  ring: 'M8 3.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9',
  clock: 'M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11M8 5v3l2 1.5',
  again: 'M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  stop: 'M4 4h8v8H4z',
  ban: 'M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11M4.2 4.2l7.6 7.6',
  skip: 'M3.5 4l4 4-4 4M8.5 4l4 4-4 4',
  wrap: 'M2.5 4h11M2.5 8h8.5a2 2 0 0 1 0 4H8M9.5 10.5L8 12l1.5 1.5M2.5 12h3',
  down: 'M8 2.5v8M4.5 7.5L8 11l3.5-3.5M3 13.5h10',
  warn: 'M8 2.5l6 11H2zM8 6.5v3.5M8 11.6v.6',
  unfold: 'M3.5 6L8 10.5L12.5 6',
  left: 'M10 3.5L5.5 8l4.5 4.5',
  right: 'M6 3.5L10.5 8L6 12.5',
  up: 'M8 13V4M4.5 7.5L8 4l3.5 3.5',
  lower: 'M8 3v9M4.5 8.5L8 12l3.5-3.5',
  bell: 'M4 11V7.5a4 4 0 0 1 8 0V11l1 1.5H3zM6.8 14h2.4',
  lock: 'M4 7.5h8v6H4zM5.5 7.5V5a2.5 2.5 0 0 1 5 0v2.5',
  grip: 'M6 3.5v.01M10 3.5v.01M6 8v.01M10 8v.01M6 12.5v.01M10 12.5v.01',
  more: 'M3.5 8v.01M8 8v.01M12.5 8v.01',
  log: 'M3 3.5h10M3 8h10M3 12.5h6',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  const width = name === 'grip' || name === 'more' ? 2.2 : 1.5
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill="none" stroke="currentColor" strokeWidth={width} strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  )
}

export function Mark({ size = 22 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <rect x="1" y="3" width="5.5" height="18" rx="1.2" fill="var(--line2)" />
      <rect x="9" y="1" width="6.5" height="22" rx="1.2" fill="var(--accent-solid)" />
      <rect x="18" y="3" width="5.5" height="18" rx="1.2" fill="var(--line2)" />
    </svg>
  )
}
