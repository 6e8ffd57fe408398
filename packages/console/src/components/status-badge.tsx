import type { AppDeliveryOut, AppUserOut, RunOut } from '@workflow-service/contract'
import { Time } from './time.tsx'

type Tone = 'good' | 'bad' | 'warn' | 'active' | 'quiet'
type Status = RunOut['status'] | AppDeliveryOut['outcome'] | AppUserOut['state'] | 'open' | 'closed' | 'on' | 'off'

const STATUSES: Record<Status, readonly [Tone, string]> = {
  queued: ['quiet', 'Queued'],
  running: ['active', 'Running'],
  waiting: ['warn', 'Waiting for approval'],
  succeeded: ['good', 'Succeeded'],
  failed: ['bad', 'Failed'],
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
  on: ['good', 'On'],
  off: ['quiet', 'Off'],
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
