import { column, type Db, runStatement, statement } from '../connection/index.ts'

/** The interval between requests after the first limit, and its bounds. */
const FIRST_INTERVAL_MS = 250
const MIN_INTERVAL_MS = 10
const MAX_INTERVAL_MS = 60_000
/**
 * Each request that is sent makes the interval shorter; each second in which the API limits requests makes it longer.
 */
const SHORTER = 0.98
const LONGER = 1.3
/**
 * A time is reserved at most this long ahead, or one interval: times that were reserved earlier would not follow the
 * pace.
 */
const MAX_AHEAD_MS = 1_000
/**
 * Callers without a time try again a little faster than requests are sent, so that no time stays unused when the pace
 * recovers.
 */
const RETRY_PACE = 0.8
/** A limit that was not reached for this long is forgotten. */
const FORGET_AFTER = '10 minutes'

const RESERVE_MODEL_SLOT = statement(
  'runs/reserve-model-slot',
  {
    /** Whether this time was reserved for the request: false if the next free one is too far ahead. */
    isReserved: column.boolean,
    /** Until the request may be sent; if nothing is reserved, until the caller may try again. */
    delayMs: column.float8,
    /** Until requests may be sent at all, because the model's API asked to wait; 0 or less: now. */
    blockedMs: column.float8,
  },
  { FORGET_AFTER, MIN_INTERVAL_MS, SHORTER, MAX_AHEAD_MS, RETRY_PACE },
)

/**
 * Reserves a time for a request to the model, at most `maxDelayMs` and about a second from now. Resolves to undefined
 * while the model has no limit. Requests of all runners get times in turn, as far apart as the model's API was seen to
 * allow. If the next free time is later, the caller gets a time to try again, each caller another one: organizations
 * take turns. `isRepeated`: the caller sent no request in the time that it reserved last.
 */
export async function reserveModelSlot(
  db: Db,
  model: string,
  { organizationId, maxDelayMs, isRepeated }: { organizationId: string; maxDelayMs: number; isRepeated: boolean },
) {
  const { rows } = await runStatement(db, RESERVE_MODEL_SLOT, [model, maxDelayMs, isRepeated, organizationId])
  return rows[0]
}

const RECORD_MODEL_LIMIT = statement('runs/record-model-limit', {}, { FIRST_INTERVAL_MS, MAX_INTERVAL_MS, LONGER })

/**
 * Records that the model's API limited a request and asked to wait for this long. Requests that were sent together are
 * limited together, so the interval grows once in that time, and at most once a second.
 */
export async function recordModelLimit(db: Db, model: string, retryAfterMs: number): Promise<void> {
  await runStatement(db, RECORD_MODEL_LIMIT, [model, retryAfterMs])
}
