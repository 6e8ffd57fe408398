import type { TraceContext } from '@workflow-service/contract'
import { column, type Db, inTransaction, type RowOfStatement, runStatement, statement } from '../connection/index.ts'

/** A start that the API was asked for, with the ids that it gets when it is accepted. */
export interface NewStart {
  readonly startId: string
  readonly workflowId: string
  /** The session to start in; null for a new one. */
  readonly sessionId: string | null
  /** The id of the new session; not used when `sessionId` is given. */
  readonly newSessionId: string
  /** Trimmed, 1 to 10,000 characters. */
  readonly context: string
  readonly apiKeyId: string
  readonly requestId: string
  /** The trace that the run continues. */
  readonly trace?: TraceContext | null
  /** The caller's Idempotency-Key with the hash of its request; null when it sent none. */
  readonly idempotency: { readonly key: string; readonly requestSha256: Buffer } | null
}

/** A start of an organization. */
export interface QueuedStart {
  readonly organizationId: string
  readonly start: NewStart
}

/** Why a start is refused: the first violated rule in this order (contract README, "Starts and sessions"). */
export type StartRefusal =
  | 'idempotency_conflict'
  | 'workflow_not_found'
  | 'workflow_inactive'
  | 'no_active_api_trigger'
  | 'no_users_with_access'
  | 'session_not_found'
  | 'session_closed'

/**
 * The result of a start. `replayed`: its Idempotency-Key was used for the same request before; nothing was started now.
 */
export type StartOutcome =
  | { readonly kind: 'accepted' | 'replayed'; readonly startId: string; readonly sessionId: string }
  | { readonly kind: StartRefusal }

/**
 * The result of a start of a batch. `session_locked`: another transaction has locked its session's row, and nothing was
 * recorded.
 */
export type BatchedStartOutcome = StartOutcome | { readonly kind: 'session_locked' }

/**
 * The rules that a workflow must meet to start, in the order in which they are checked, each as the SQL condition that
 * violates it. `company_wide` gives access to every user of the organization. LIMIT 1 instead of EXISTS, because
 * PostgreSQL may evaluate EXISTS by reading and hashing the whole table.
 */
export const WORKFLOW_RULES = {
  workflow_inactive: 'NOT workflow.is_active',
  no_active_api_trigger: 'trigger.id IS NULL',
  no_users_with_access: `CASE workflow.scope
            WHEN 'company_wide' THEN (SELECT id FROM users WHERE organization_id = workflow.organization_id LIMIT 1)
            ELSE (SELECT user_id FROM workflow_users WHERE workflow_id = workflow.id LIMIT 1)
          END IS NULL`,
} as const satisfies Partial<Record<StartRefusal, string>>

/** The branches of a CASE that gives the first violated rule. */
export const WORKFLOW_REFUSALS = Object.entries(WORKFLOW_RULES)
  .map(([code, isViolated]) => `WHEN ${isViolated} THEN '${code}'`)
  .join('\n          ')

/** Joins the trigger of `workflow` that the API fires. */
export const JOIN_API_TRIGGER = `LEFT JOIN LATERAL (
        SELECT id, input_message FROM triggers
        WHERE workflow_id = workflow.id AND is_active AND source_slug = 'api'
        ORDER BY created_at, id LIMIT 1
      ) AS trigger ON true`

const RECORD_STARTS = statement(
  'runs/record-starts',
  { kind: column.text<BatchedStartOutcome['kind']>(), startId: column.uuid, sessionId: column.uuid },
  { WORKFLOW_REFUSALS, JOIN_API_TRIGGER },
)

/**
 * Checks and records one start, and waits when another transaction has locked its session. `accepted` means committed.
 * When it rejects, the start may or may not have been recorded.
 */
export async function recordStart(db: Db, organizationId: string, start: NewStart): Promise<StartOutcome> {
  const [outcome] = await recordInSession(db, start.sessionId, [{ organizationId, start }])
  return outcome!
}

/** As `recordStart`, for starts of one session, or of one without. No two may have the same Idempotency-Key. */
export async function recordInSession(
  db: Db,
  sessionId: string | null,
  starts: readonly QueuedStart[],
): Promise<StartOutcome[]> {
  const rows = await inTransaction(db, async (client) => {
    // RECORD_STARTS skips a locked session. Once this transaction has the lock, nothing is skipped.
    const lock = 'SELECT FROM sessions WHERE organization_id = $1 AND id = $2 FOR NO KEY UPDATE'
    if (sessionId !== null) await client.query(lock, [starts[0]?.organizationId, sessionId])
    return (await runStatement({ pool: client }, RECORD_STARTS, [toJson(starts)])).rows
  })
  const outcomes = rows.map(toOutcome)
  // The session was deleted while this transaction waited for its lock.
  return outcomes.map((outcome) => (outcome.kind === 'session_locked' ? { kind: 'session_not_found' } : outcome))
}

/**
 * Checks and records many starts in one statement and one commit; no two of them may have the same Idempotency-Key. A
 * start whose session another transaction has locked is `session_locked` and not recorded: the others do not wait for
 * it.
 */
export async function recordStarts(db: Db, starts: readonly QueuedStart[]): Promise<BatchedStartOutcome[]> {
  const { rows } = await runStatement(db, RECORD_STARTS, [toJson(starts)])
  return rows.map(toOutcome)
}

function toOutcome({ kind, startId, sessionId }: RowOfStatement<typeof RECORD_STARTS>): BatchedStartOutcome {
  return kind === 'accepted' || kind === 'replayed' ? { kind, startId, sessionId } : { kind }
}

function toJson(starts: readonly QueuedStart[]): string {
  return JSON.stringify(
    starts.map(({ organizationId, start }) => ({
      organization_id: organizationId,
      start_id: start.startId,
      workflow_id: start.workflowId,
      session_id: start.sessionId,
      new_session_id: start.newSessionId,
      context: start.context,
      api_key_id: start.apiKeyId,
      request_id: start.requestId,
      idempotency_key: start.idempotency?.key ?? null,
      request_sha256: start.idempotency?.requestSha256.toString('hex') ?? null,
      // Absent, and thereby NULL, for most starts.
      ...start.trace,
    })),
  )
}
