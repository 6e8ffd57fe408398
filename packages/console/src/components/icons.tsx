/** Paths on a grid of 16 × 16. */
const PATHS = {
  overview: 'M2.5 8.5 8 3l5.5 5.5M4 7.5V13h8V7.5M6.75 13V9.75h2.5V13',
  workflow: 'M2.5 2.5h4v4h-4zM9.5 9.5h4v4h-4zM4.5 6.5v3a2 2 0 0 0 2 2h3',
  source: 'M5.5 5.5a2.5 2.5 0 1 1 3.6 2.2L6.5 12M8 5.5l2.2 4.2a2.5 2.5 0 1 1-1.7 3.2M6.5 12A2.5 2.5 0 1 1 4 9',
  agent: 'M3.5 6h9v7h-9zM8 6V3M6.25 9v1M9.75 9v1',
  run: 'M5 3.2v9.6l7.5-4.8z',
  pause: 'M5.5 3v10M10.5 3v10',
  session: 'M2.5 3.5h11v7h-6L4.5 13v-2.5h-2z',
  key: 'M6 12.5a2.75 2.75 0 1 0 0-5.5 2.75 2.75 0 0 0 0 5.5ZM8 7.9l5.2-5.2M10.7 5.2l1.9 1.9',
  people:
    'M6 7.5a2.25 2.25 0 1 0 0-4.5 2.25 2.25 0 0 0 0 4.5ZM2 13c0-2.2 1.8-3.5 4-3.5s4 1.3 4 3.5M10.5 3.2a2.2 2.2 0 0 1 0 4.1M11.5 9.7c1.5.4 2.5 1.6 2.5 3.3',
  usage: 'M3 13.5V8M6.33 13.5v-11M9.66 13.5V6M13 13.5v-3.5',
  audit: 'M4 2.5h8v11H4zM6.25 5.5h3.5M6.25 8h3.5M6.25 10.5h2',
  organization: 'M3 13.5v-11h6v11M9 6h4v7.5M2 13.5h12M5.5 5h1M5.5 7.5h1M5.5 10h1M11 8.5h.01M11 11h.01',
  account: 'M8 8a2.75 2.75 0 1 0 0-5.5A2.75 2.75 0 0 0 8 8ZM3 13.5c0-2.5 2.2-4 5-4s5 1.5 5 4',
  search: 'M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.5 10.5l3 3',
  plus: 'M8 3v10M3 8h10',
  check: 'M3 8.5 6.5 12 13 4.5',
  close: 'm4 4 8 8M12 4l-8 8',
  copy: 'M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z',
  more: 'M3.8000000000000003 8a.6.6 0 1 1-1.2 0 .6.6 0 0 1 1.2 0ZM8.6 8a.6.6 0 1 1-1.2 0 .6.6 0 0 1 1.2 0ZM13.4 8a.6.6 0 1 1-1.2 0 .6.6 0 0 1 1.2 0Z',
  down: 'm4 6 4 4 4-4',
  up: 'm4 10 4-4 4 4',
  external: 'M9 3h4v4M13 3 7.5 8.5M11 9.5V13H3V5h3.5',
  refresh: 'M13 8a5 5 0 1 1-1.5-3.5L13 6M13 2.5V6H9.5',
  warning: 'M8 2.5 14 13H2zM8 6.5v3M8 11.25h.01',
  info: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 7.5V11M8 5.25h.01',
  lock: 'M4 7.5h8v6H4zM5.75 7.5V5.25a2.25 2.25 0 0 1 4.5 0V7.5',
  circle: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12Z',
  clock: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12ZM8 4.75V8l2.25 1.5',
  file: 'M4 2.5h5l3 3v8H4zM9 2.5v3h3',
  folder: 'M2.5 4h4L8 5.5h5.5v7h-11z',
  trash: 'M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.5 9h6l.5-9',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  eye: 'M1.8 8S4 3.8 8 3.8 14.2 8 14.2 8 12 12.2 8 12.2 1.8 8 1.8 8ZM8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6Z',
  send: 'M13.5 2.5 7 9M13.5 2.5l-4 11L7 9 2.5 6.5z',
} as const
export type IconName = keyof typeof PATHS

/** A decorative icon; the control that contains it has the name. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}
