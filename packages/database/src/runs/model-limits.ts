import { type Db, type NamedStatement, runStatement } from '../connection/index.ts'

/** What a caller asks of the pace of a model. */
export interface ModelSlotOptions {
  /** The longest delay that the caller waits. */
  readonly maxDelayMs: number
  /** Whether the caller sent no request in the time that it reserved last. */
  readonly isRepeated: boolean
}

/** When a request to a model may be sent. */
export interface ModelSlot {
  /** Until the request may be sent; if nothing is reserved, until the caller may try again. */
  readonly delayMs: number
  /** Whether this time was reserved for the request: false if the next free one is too far ahead. */
  readonly isReserved: boolean
  /** Until requests may be sent at all, because the model's API asked to wait; 0 or less: now. */
  readonly blockedMs: number
}

/** The interval between requests after the first limit, and its bounds. */
const FIRST_INTERVAL_MS = 250
const MIN_INTERVAL_MS = 10
const MAX_INTERVAL_MS = 60_000
/** Each request that is sent makes the interval shorter; each second in which the API limits requests makes it longer. */
const SHORTER = 0.98
const LONGER = 1.3
/** A time is reserved at most this long ahead, or one interval: times that were reserved earlier would not follow the pace. */
const MAX_AHEAD_MS = 1_000
/** Callers without a time try again a little faster than requests are sent, so that no time stays unused when the pace recovers. */
const RETRY_PACE = 0.8
/** A limit that was not reached for this long is forgotten. */
const FORGET_AFTER = '10 minutes'

const RESERVE_MODEL_SLOT: NamedStatement = {
  name: 'reserve-model-slot',
  text: `
    WITH forgotten AS (
      DELETE FROM model_limits WHERE model = $1 AND limited_at < clock_timestamp() - interval '${FORGET_AFTER}'
      RETURNING model
    ),
    reserved AS (
      UPDATE model_limits SET
        last_at = greatest(last_at + interval_ms * interval '1 millisecond', not_before, clock_timestamp()),
        interval_ms = CASE WHEN $3 THEN interval_ms ELSE greatest(${MIN_INTERVAL_MS}, interval_ms * ${SHORTER}) END
      WHERE model = $1 AND NOT EXISTS (SELECT FROM forgotten)
        AND greatest(last_at + interval_ms * interval '1 millisecond', not_before)
          <= clock_timestamp() + least($2, greatest(${MAX_AHEAD_MS}, interval_ms)) * interval '1 millisecond'
      RETURNING last_at, not_before
    ),
    parked AS (
      UPDATE model_limits SET
        parked_at = greatest(
          parked_at + ${RETRY_PACE} * interval_ms * interval '1 millisecond',
          last_at + interval_ms * interval '1 millisecond', not_before, clock_timestamp()
        )
      WHERE model = $1 AND NOT EXISTS (SELECT FROM forgotten) AND NOT EXISTS (SELECT FROM reserved)
      RETURNING parked_at, not_before
    ),
    slot AS (
      SELECT last_at AS at, not_before, true AS is_reserved FROM reserved
      UNION ALL
      SELECT parked_at, not_before, false FROM parked
    )
    SELECT is_reserved AS "isReserved",
      greatest(0, 1000 * extract(epoch FROM at - clock_timestamp()))::float8 AS "delayMs",
      (1000 * extract(epoch FROM not_before - clock_timestamp()))::float8 AS "blockedMs"
    FROM slot`,
}

/**
 * Reserves a time for a request to the model, at most `maxDelayMs` and about a second from now. Resolves to undefined while the model
 * has no limit. Requests of all runners get times in turn, as far apart as the model's API was seen to allow. If the next free time is
 * later, the caller gets a time to try again, each caller another one.
 */
export async function reserveModelSlot(
  db: Db,
  model: string,
  { maxDelayMs, isRepeated }: ModelSlotOptions,
): Promise<ModelSlot | undefined> {
  const { rows } = await runStatement<ModelSlot>(db, RESERVE_MODEL_SLOT, [model, maxDelayMs, isRepeated])
  return rows[0]
}

const RECORD_MODEL_LIMIT: NamedStatement = {
  name: 'record-model-limit',
  text: `
    INSERT INTO model_limits (model, not_before, last_at, parked_at, interval_ms, limited_at)
    VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond', clock_timestamp(), clock_timestamp(),
      ${FIRST_INTERVAL_MS}, clock_timestamp())
    ON CONFLICT (model) DO UPDATE SET
      not_before = greatest(model_limits.not_before, excluded.not_before),
      interval_ms = CASE WHEN model_limits.limited_at < clock_timestamp() - greatest(1000, $2) * interval '1 millisecond'
        THEN least(${MAX_INTERVAL_MS}, model_limits.interval_ms * ${LONGER}) ELSE model_limits.interval_ms END,
      limited_at = CASE WHEN model_limits.limited_at < clock_timestamp() - greatest(1000, $2) * interval '1 millisecond'
        THEN clock_timestamp() ELSE model_limits.limited_at END`,
}

/**
 * Records that the model's API limited a request and asked to wait for this long. Requests that were sent together are limited
 * together, so the interval grows once in that time, and at most once a second.
 */
export async function recordModelLimit(db: Db, model: string, retryAfterMs: number): Promise<void> {
  await runStatement(db, RECORD_MODEL_LIMIT, [model, retryAfterMs])
}
