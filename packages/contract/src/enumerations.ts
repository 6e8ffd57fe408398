/** Closed lists of values, and the pattern of an id. This module imports nothing, so that `wf` starts quickly. */

/** The pattern of an id on the wire: hyphenated, any case. Responses use lower case. */
export const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The permissions of an API key (contract README, "Authentication"). */
export const SCOPES = ['read', 'start'] as const
export type Scope = (typeof SCOPES)[number]

/** The roles of a user of an organization, the most powerful first (contract README, "Application"). */
export const ROLES = ['owner', 'admin', 'member'] as const
export type Role = (typeof ROLES)[number]

export const RUN_STATUSES = ['queued', 'running', 'waiting', 'succeeded', 'failed', 'cancelled'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

/** The outcomes of a delivery (contract README, "Deliveries"). */
export const DELIVERY_OUTCOMES = [
  'accepted',
  'rejected',
  'timed_out',
  'unreachable',
  'refused',
  'invalid',
  'unknown',
  'in_flight',
] as const
export type DeliveryOutcome = (typeof DELIVERY_OUTCOMES)[number]

/** The kinds of outbound requests (contract README, "Deliveries"). */
export const DELIVERY_KINDS = ['verification', 'payload'] as const
export type DeliveryKind = (typeof DELIVERY_KINDS)[number]
