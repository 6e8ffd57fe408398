import type { JournalStep } from '@workflow-service/contract'
import { CLAIMED_RUN, type ClaimedRun, MAX_RUN_ATTEMPTS } from './claimed-run.ts'
import { type Db, type NamedStatement, runStatement } from '../connection/index.ts'
import { readStepsOfRuns } from './journal.ts'
import type { Lease } from './lease.ts'

const CLAIM_NEXT_RUN: NamedStatement = {
  name: 'claim-next-run',
  text: `
    WITH leased AS MATERIALIZED (
      SELECT id, last_finished_number + 1 AS number, last_finished_number < last_start_number AS has_work
      FROM sessions
      WHERE id = $2 AND lease_epoch = $3 AND lease_owner = $1
      FOR NO KEY UPDATE
    ),
    claimed AS (
      UPDATE starts SET status = 'running', attempts = attempts + 1, started_at = coalesce(started_at, now())
      FROM leased
      WHERE leased.has_work AND starts.session_id = leased.id AND starts.number = leased.number
      RETURNING starts.*
    )
    SELECT leased.number::float8 AS number, leased.has_work AS "hasWork",
      CASE WHEN workflows.id IS NOT NULL THEN ${CLAIMED_RUN} END AS run
    FROM leased
    LEFT JOIN claimed ON claimed.session_id = leased.id
    LEFT JOIN workflows ON workflows.id = claimed.workflow_id`,
}

const SKIP_DELETED_START: NamedStatement = {
  name: 'skip-deleted-start',
  text: `
    UPDATE sessions SET last_finished_number = $4,
      waiting_since = CASE WHEN last_start_number > $4 THEN now() END
    WHERE id = $2 AND lease_epoch = $3 AND lease_owner = $1 AND last_finished_number = $4 - 1
      AND NOT EXISTS (SELECT FROM starts WHERE session_id = $2 AND number = $4)`,
}

/** What the owner of a lease does next. */
export type NextRun =
  | { readonly kind: 'run'; readonly run: ClaimedRun }
  /** The lease is the caller's, and the session has no work. */
  | { readonly kind: 'idle' }
  | { readonly kind: 'lease_lost' }

/** Claims the session's next start in number order. Skips starts that were deleted with their workflow. */
export async function claimNextRun(db: Db, owner: string, lease: Lease): Promise<NextRun> {
  const values = [owner, lease.sessionId, lease.epoch]
  for (;;) {
    const { rows } = await runStatement<{ number: number; hasWork: boolean; run: ClaimedRun | null }>(
      db,
      CLAIM_NEXT_RUN,
      values,
    )
    const [row] = rows
    if (!row) return { kind: 'lease_lost' }
    if (!row.hasWork) return { kind: 'idle' }
    if (row.run) return { kind: 'run', run: row.run }
    await runStatement(db, SKIP_DELETED_START, [...values, row.number])
  }
}

/** How a run ended. */
export interface FinishedRun {
  readonly lease: Lease
  readonly number: number
  readonly status: 'succeeded' | 'failed'
  /** Why it failed; null when it succeeded. */
  readonly error: string | null
  /**
   * Whether to claim the session's next start under the same lease, unless the organization is suspended. Otherwise the
   * session is released.
   */
  readonly shouldClaimNext: boolean
}

/** The result of `finishRuns` for one run. */
export type FinishOutcome =
  | { readonly kind: 'finished'; readonly next: ClaimedRun | null; readonly isReleased: boolean }
  /** Nothing was written. */
  | { readonly kind: 'lease_lost' }

// The counter that shows whether there is more work is on the locked row, and is read by the statement that releases the
// session: a start that was recorded before is claimed, a later one finds the session free. `advanced` depends on
// `finished`, and `claimed` on `advanced`, so that two runs of a session are never `running` at once, which the unique
// index starts_one_running_per_session would refuse.
const FINISH_RUNS: NamedStatement = {
  name: 'finish-runs',
  text: `
    WITH ended AS MATERIALIZED (
      SELECT * FROM unnest($2::uuid[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::boolean[])
        AS ended (session_id, epoch, number, status, error, claims_next)
    ),
    locked AS MATERIALIZED (
      SELECT id, organization_id, lease_epoch, last_finished_number + 1 AS number FROM sessions
      WHERE id = ANY ($2::uuid[]) AND lease_owner = $1
      ORDER BY id FOR NO KEY UPDATE
    ),
    leased AS MATERIALIZED (
      SELECT ended.session_id, ended.number, ended.status, ended.error,
        ended.claims_next
          AND NOT (SELECT is_suspended FROM organizations WHERE organizations.id = locked.organization_id) AS claims_next
      FROM locked
      JOIN ended ON ended.session_id = locked.id AND ended.epoch = locked.lease_epoch AND ended.number = locked.number
    ),
    finished AS (
      UPDATE starts SET status = leased.status, error = leased.error, finished_at = now(),
        attempts = least(attempts, $8)
      FROM leased WHERE starts.session_id = leased.session_id AND starts.number = leased.number
      RETURNING leased.*
    ),
    advanced AS (
      UPDATE sessions SET
        last_finished_number = finished.number,
        waiting_since = CASE WHEN last_start_number > finished.number THEN now() END,
        lease_owner = CASE WHEN last_start_number > finished.number AND finished.claims_next THEN lease_owner END,
        lease_until = CASE WHEN last_start_number > finished.number AND finished.claims_next THEN lease_until END
      FROM finished WHERE sessions.id = finished.session_id
      RETURNING sessions.id, sessions.last_finished_number + 1 AS number, sessions.lease_owner IS NULL AS is_released
    ),
    claimed AS (
      UPDATE starts SET status = 'running', attempts = attempts + 1, started_at = coalesce(started_at, now())
      FROM advanced
      WHERE NOT advanced.is_released AND starts.session_id = advanced.id AND starts.number = advanced.number
      RETURNING starts.*
    )
    SELECT advanced.id AS "sessionId", advanced.is_released AS "isReleased",
      CASE WHEN workflows.id IS NOT NULL THEN ${CLAIMED_RUN} END AS next
    FROM advanced
    LEFT JOIN claimed ON claimed.session_id = advanced.id
    LEFT JOIN workflows ON workflows.id = claimed.workflow_id`,
}

/**
 * Finishes runs of any number of sessions in one statement, each only under its own lease. Claims each session's next start,
 * or releases the session when it has none.
 */
export async function finishRuns(
  db: Db,
  owner: string,
  runs: readonly FinishedRun[],
): Promise<readonly FinishOutcome[]> {
  const { rows } = await runStatement<{ sessionId: string; isReleased: boolean; next: ClaimedRun | null }>(
    db,
    FINISH_RUNS,
    [
      owner,
      runs.map(({ lease }) => lease.sessionId),
      runs.map(({ lease }) => lease.epoch),
      runs.map(({ number }) => number),
      runs.map(({ status }) => status),
      runs.map(({ error }) => error),
      runs.map(({ shouldClaimNext }) => shouldClaimNext),
      MAX_RUN_ATTEMPTS,
    ],
  )
  const finished = new Map(rows.map((row) => [row.sessionId, row]))
  return runs.map(({ lease }): FinishOutcome => {
    const row = finished.get(lease.sessionId)
    return row ? { kind: 'finished', next: row.next, isReleased: row.isReleased } : { kind: 'lease_lost' }
  })
}

const COUNT_ATTEMPT: NamedStatement = {
  name: 'count-attempt',
  text: `
    WITH leased AS MATERIALIZED (
      SELECT id, last_finished_number + 1 AS number FROM sessions
      WHERE id = $2 AND lease_epoch = $3 AND lease_owner = $1
      FOR NO KEY UPDATE
    )
    UPDATE starts SET attempts = attempts + 1 FROM leased
    WHERE starts.session_id = leased.id AND starts.number = leased.number AND starts.status = 'running'
    RETURNING starts.attempts`,
}

/** Increments the attempt counter of the running run. Resolves to the new count, or undefined if the lease was lost. */
export async function countAttempt(db: Db, owner: string, lease: Lease): Promise<number | undefined> {
  const values = [owner, lease.sessionId, lease.epoch]
  const { rows } = await runStatement<{ attempts: number }>(db, COUNT_ATTEMPT, values)
  return rows[0]?.attempts
}

/** An earlier run of a session. */
export interface EarlierRun {
  readonly runId: string
  readonly workflowName: string
  readonly inputMessage: string
  readonly context: string
  readonly status: 'succeeded' | 'failed'
  readonly error: string | null
  readonly steps: readonly JournalStep[]
}

const LIST_EARLIER_RUNS: NamedStatement = {
  name: 'list-earlier-runs',
  text: `
    SELECT starts.id AS "runId", workflows.name AS "workflowName", starts.input_message AS "inputMessage",
      starts.context, starts.status, starts.error
    FROM starts JOIN workflows ON workflows.id = starts.workflow_id
    WHERE starts.organization_id = $1 AND starts.session_id = $2 AND starts.number < $3
      AND starts.status IN ('succeeded', 'failed')
    ORDER BY starts.number DESC LIMIT $4`,
}

/** The newest `limit` finished runs of the session before run `number`, oldest first, with their journals. */
export async function listEarlierRuns(
  db: Db,
  organizationId: string,
  range: { readonly sessionId: string; readonly number: number; readonly limit: number },
): Promise<readonly EarlierRun[]> {
  const { rows } = await runStatement<Omit<EarlierRun, 'steps'>>(db, LIST_EARLIER_RUNS, [
    organizationId,
    range.sessionId,
    range.number,
    range.limit,
  ])
  const steps = await readStepsOfRuns(
    db,
    rows.map(({ runId }) => runId),
  )
  return rows.toReversed().map((run) => ({ ...run, steps: steps.get(run.runId) ?? [] }))
}
