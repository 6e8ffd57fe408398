import type { AppDeliveryOut, AppUserOut, RunOut } from '@workflow-service/contract'
import { createStore } from '../api/store.ts'

const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS
const UPDATE_MS = 15_000
const CLOCK_SKEW_MS = 5_000

const now = createStore(Date.now())
setInterval(() => {
  if (document.visibilityState === 'visible') now.set(Date.now())
}, UPDATE_MS)

/** The time of the last update of relative times. */
export const useNow = now.use

/** The beginning of the last 24 hours, the last of which is not over. */
export function useLastDay(): string {
  const at = useNow()
  return new Date(at - (at % HOUR_MS) - 23 * HOUR_MS).toISOString()
}

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
export const DATE_TIME = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' })
const TIME = new Intl.DateTimeFormat('en', { timeStyle: 'medium' })
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

/**
 * A time in the reader's zone: relative within a day unless `isExact`, with the exact UTC on hover. `none` if there is
 * none.
 */
export function Time({ value, isExact, none = '–' }: { value: string | null; isExact?: boolean; none?: string }) {
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

/**
 * A time to the second in the reader's zone, and within a day how long ago it was. Also a finger can read it: it needs
 * no hover.
 */
export function FullTime({ value }: { value: string }) {
  const nowMs = useNow()
  const ms = Date.parse(value)
  if (Math.abs(ms - nowMs) >= DAY_MS) return <Time value={value} isExact />
  return (
    <time dateTime={value} title={utcText(value)}>
      {TIME.format(ms)} <span className="muted">{relativeText(ms, nowMs)}</span>
    </time>
  )
}

/** Formats a duration as `840 ms`, `12.3 s` or `4 min 5 s`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  // More would be rounded to 60.0 s.
  if (ms < MINUTE_MS - 50) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`
}

type Tone = 'good' | 'bad' | 'warn' | 'active' | 'quiet'
type Status = RunOut['status'] | AppDeliveryOut['outcome'] | AppUserOut['state'] | 'open' | 'closed'

const STATUSES: Record<Status, readonly [Tone, string]> = {
  queued: ['quiet', 'Queued'],
  running: ['active', 'Running'],
  waiting: ['warn', 'Waiting for approval'],
  succeeded: ['good', 'Succeeded'],
  failed: ['bad', 'Failed'],
  cancelled: ['quiet', 'Cancelled'],
  accepted: ['good', 'Accepted'],
  rejected: ['bad', 'Rejected'],
  timed_out: ['bad', 'Timed out'],
  unreachable: ['bad', 'Unreachable'],
  refused: ['bad', 'Refused'],
  invalid: ['warn', 'Invalid'],
  unknown: ['warn', 'Unknown'],
  in_flight: ['active', 'In flight'],
  active: ['good', 'Active'],
  invited: ['active', 'Invited'],
  no_access: ['quiet', 'No access'],
  deactivated: ['quiet', 'Deactivated'],
  open: ['good', 'Open'],
  closed: ['quiet', 'Closed'],
}

/** The words for a status; other texts stay as they are. */
export function statusText(status: string): string {
  return STATUSES[status as Status]?.[1] ?? status
}

/** The words for these statuses, as choices. */
export function statusTexts(...statuses: Status[]): Record<string, string> {
  return Object.fromEntries(statuses.map((status) => [status, statusText(status)]))
}

/** A status as a word with a mark, so that it does not depend on the color. `children` replaces the word. */
export function StatusBadge({ status, children }: { status: Status; children?: string | undefined }) {
  return <span className={`badge ${STATUSES[status]?.[0] ?? 'quiet'}`}>{children ?? statusText(status)}</span>
}

/** The status of something that happened last, and when; its reason on hover. */
export function LastStatus(props: { status: Status; at: string; reason?: string | null; text?: string }) {
  return (
    <span className="row" title={props.reason ?? undefined}>
      <StatusBadge status={props.status}>{props.text}</StatusBadge>
      <span className="muted">
        <Time value={props.at} />
      </span>
    </span>
  )
}
