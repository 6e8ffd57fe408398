import { createStore } from '../api/store.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const UPDATE_MS = 15_000
const CLOCK_SKEW_MS = 5_000

const now = createStore(Date.now())
setInterval(() => {
  if (document.visibilityState === 'visible') now.set(Date.now())
}, UPDATE_MS)

/** The time of the last update of relative times. */
export const useNow = now.use

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const DATE_TIME = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' })
const EXACT = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' })

function relativeText(ms: number, nowMs: number): string {
  const minutes = Math.round((ms - nowMs) / MINUTE_MS)
  // `nowMs` is up to 15 s old, and the server's clock a little ahead.
  if (minutes === 0) return ms > Date.now() + CLOCK_SKEW_MS ? 'in a moment' : 'just now'
  return Math.abs(minutes) < 60 ? RELATIVE.format(minutes, 'minute') : RELATIVE.format(Math.round(minutes / 60), 'hour')
}

/** Formats a time as `2026-11-22 08:45:38.123 UTC`. */
export function utcText(value: string): string {
  return `${new Date(value).toISOString().replace('T', ' ').replace('Z', '')} UTC`
}

interface TimeProps {
  value: string | null
  isExact?: boolean
  /** Shown if there is no time: `Never`. */
  none?: string
}

/** A time in the reader's zone: relative within a day unless `isExact`, with the exact UTC on hover. */
export function Time({ value, isExact = false, none = '–' }: TimeProps) {
  const nowMs = useNow()
  if (value === null) return <span className="muted">{none}</span>
  const ms = Date.parse(value)
  const isNear = Math.abs(ms - nowMs) < DAY_MS
  return (
    <time dateTime={value} title={`${utcText(value)}\n${EXACT.format(ms)} here`}>
      {isExact ? EXACT.format(ms) : isNear ? relativeText(ms, nowMs) : DATE_TIME.format(ms)}
    </time>
  )
}

/** Formats a duration as `840 ms`, `12.3 s` or `4 min 5 s`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < MINUTE_MS) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
}
