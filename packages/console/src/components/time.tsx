import { useSyncExternalStore } from 'react'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
const UPDATE_MS = 15_000

let now = Date.now()
const listeners = new Set<() => void>()
setInterval(() => {
  if (document.visibilityState !== 'visible') return
  now = Date.now()
  for (const listener of listeners) listener()
}, UPDATE_MS)

/** The time of the last update of relative times. */
export function useNow(): number {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => now,
  )
}

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const DATE_TIME = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' })
const EXACT = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'medium' })

function relativeText(ms: number, nowMs: number): string {
  const minutes = Math.round((ms - nowMs) / MINUTE_MS)
  if (minutes === 0) return ms > nowMs ? 'in a moment' : 'just now'
  return Math.abs(minutes) < 60 ? RELATIVE.format(minutes, 'minute') : RELATIVE.format(Math.round(minutes / 60), 'hour')
}

/** Formats a time as `2026-11-22 08:45:38.123 UTC`. */
export function utcText(value: string): string {
  return `${new Date(value).toISOString().replace('T', ' ').replace('Z', '')} UTC`
}

/** A time in the reader's zone: relative within a day unless `isExact`, with the exact UTC on hover. */
export function Time({ value, isExact = false }: { value: string; isExact?: boolean }) {
  const nowMs = useNow()
  const ms = Date.parse(value)
  const text = isExact
    ? EXACT.format(ms)
    : Math.abs(ms - nowMs) < DAY_MS
      ? relativeText(ms, nowMs)
      : DATE_TIME.format(ms)
  return (
    <time dateTime={value} title={`${utcText(value)}\n${EXACT.format(ms)} here`}>
      {text}
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
