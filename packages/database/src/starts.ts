import { type Database, type NamedStatement, runStatement } from './client.ts'

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
  /** The caller's Idempotency-Key with the hash of what it asked for; null when it sent none. */
  readonly idempotency: { readonly key: string; readonly requestSha256: Buffer } | null
}

/** Why a start is refused: the first rule that it breaks, in the order of contract 3 and design 5. */
export type StartRefusal =
  | 'idempotency_conflict'
  | 'workflow_not_found'
  | 'workflow_inactive'
  | 'no_active_api_trigger'
  | 'no_users_with_access'
  | 'session_not_found'
  | 'session_closed'

/** What came of a start. `replayed`: the Idempotency-Key has been used for the same before, and nothing was started now. */
export type StartOutcome =
  | { readonly kind: 'accepted' | 'replayed'; readonly startId: string; readonly sessionId: string }
  | { readonly kind: StartRefusal }
  /** Somebody else holds the session's row, and the statement was told not to wait. */
  | { readonly kind: 'session_busy' }

/** How long an Idempotency-Key is kept, in hours (design 5). */
const IDEMPOTENCY_HOURS = 24

/** Where a start is refused for its workflow: the WHENs of a CASE, in the order of the contract. */
const REFUSED_FOR_WORKFLOW_SQL = `
  WHEN workflow.id IS NULL THEN 'workflow_not_found'
  WHEN NOT workflow.is_active THEN 'workflow_inactive'
  WHEN trigger.id IS NULL THEN 'no_active_api_trigger'
  WHEN NOT CASE workflow.scope
    WHEN 'company_wide' THEN EXISTS (SELECT FROM users WHERE organization_id = workflow.organization_id)
    ELSE EXISTS (SELECT FROM workflow_users WHERE workflow_id = workflow.id)
  END THEN 'no_users_with_access'`

/** The workflow of each `request`, and the trigger that fires; null where there is none. */
const WORKFLOW_AND_TRIGGER_SQL = `
  LEFT JOIN LATERAL (
    SELECT id, organization_id, is_active, scope FROM workflows
    WHERE organization_id = request.organization_id AND id = request.workflow_id
    LIMIT 1
  ) workflow ON true
  LEFT JOIN LATERAL (
    SELECT id, input_message FROM triggers
    WHERE workflow_id = workflow.id AND is_active AND source_slug = 'api'
    ORDER BY created_at, id LIMIT 1
  ) trigger ON true`

/**
 * One statement checks and records any number of starts, each for itself, in the order given.
 *
 * - Sessions are locked by id before anything is written, so that two batches never wait for each other in a circle; what
 *   the lock shows (closed meanwhile?) counts, not what the snapshot showed. The number of a start is taken under that
 *   lock, hence number order is commit order.
 * - The Idempotency-Key's row is written before the start. A racing statement waits there for the first to commit, and
 *   gets the first one's row back from ON CONFLICT, which its own snapshot could not show.
 * - Rows are looked up by LATERAL with LIMIT 1, hence by index whatever the planner thinks of the number of starts.
 * - `company_wide` gives access to every user of the organization, whoever is listed.
 */
function recordStartsSql(lockWait: '' | 'SKIP LOCKED'): string {
  return `
    WITH request AS MATERIALIZED (
      SELECT * FROM ROWS FROM (json_to_recordset($1::json) AS (
        organization_id uuid, start_id uuid, workflow_id uuid, session_id uuid, new_session_id uuid, context text,
        api_key_id uuid, request_id text, idempotency_key text, request_sha256 text
      )) WITH ORDINALITY AS request (
        organization_id, start_id, workflow_id, session_id, new_session_id, context,
        api_key_id, request_id, idempotency_key, request_sha256, place
      )
    ),
    checked AS MATERIALIZED (
      SELECT request.*, coalesce(request.session_id, request.new_session_id) AS target_session_id,
             earlier.start_id AS earlier_start_id, earlier.session_id AS earlier_session_id, session.id AS known_session_id,
             trigger.id AS trigger_id, trigger.input_message,
             CASE
               WHEN earlier.request_sha256 = decode(request.request_sha256, 'hex') THEN 'replayed'
               WHEN earlier.start_id IS NOT NULL THEN 'idempotency_conflict'
               ${REFUSED_FOR_WORKFLOW_SQL}
             END AS refusal
      FROM request
      LEFT JOIN LATERAL (
        SELECT start_id, session_id, request_sha256 FROM idempotency_keys
        WHERE api_key_id = request.api_key_id AND key = request.idempotency_key
          AND created_at > now() - interval '${IDEMPOTENCY_HOURS} hours'
        LIMIT 1
      ) earlier ON true
      ${WORKFLOW_AND_TRIGGER_SQL}
      LEFT JOIN LATERAL (
        SELECT id FROM sessions
        WHERE organization_id = request.organization_id AND id = request.session_id
        LIMIT 1
      ) session ON true
    ),
    locked AS MATERIALIZED (
      SELECT id, is_open FROM sessions
      WHERE id = ANY (ARRAY(SELECT known_session_id FROM checked WHERE refusal IS NULL))
      ORDER BY id FOR NO KEY UPDATE ${lockWait}
    ),
    judged AS MATERIALIZED (
      SELECT checked.*,
             CASE
               WHEN refusal IS NOT NULL THEN refusal
               WHEN checked.session_id IS NULL THEN 'accepted'
               WHEN known_session_id IS NULL THEN 'session_not_found'
               WHEN locked.id IS NULL THEN 'session_busy'
               WHEN NOT locked.is_open THEN 'session_closed'
               ELSE 'accepted'
             END AS verdict
      FROM checked LEFT JOIN locked ON locked.id = known_session_id
    ),
    claimed AS (
      INSERT INTO idempotency_keys AS stored (api_key_id, key, request_sha256, start_id, session_id, created_at)
      SELECT api_key_id, idempotency_key, decode(request_sha256, 'hex'), start_id, target_session_id, clock_timestamp()
      FROM judged WHERE verdict = 'accepted' AND idempotency_key IS NOT NULL
      ORDER BY api_key_id, idempotency_key
      ON CONFLICT (api_key_id, key) DO UPDATE SET
        (request_sha256, start_id, session_id, created_at) = (
          SELECT request_sha256, start_id, session_id, created_at
          FROM (VALUES
            (stored.created_at > now() - interval '${IDEMPOTENCY_HOURS} hours',
             stored.request_sha256, stored.start_id, stored.session_id, stored.created_at),
            (stored.created_at <= now() - interval '${IDEMPOTENCY_HOURS} hours',
             excluded.request_sha256, excluded.start_id, excluded.session_id, excluded.created_at)
          ) AS version (is_current, request_sha256, start_id, session_id, created_at)
          WHERE is_current
        )
      RETURNING api_key_id, key, request_sha256, start_id, session_id
    ),
    outcome AS MATERIALIZED (
      SELECT judged.*,
             CASE
               WHEN verdict <> 'accepted' OR claimed.start_id IS NULL OR claimed.start_id = judged.start_id THEN verdict
               WHEN claimed.request_sha256 = decode(judged.request_sha256, 'hex') THEN 'replayed'
               ELSE 'idempotency_conflict'
             END AS kind,
             coalesce(claimed.start_id, earlier_start_id, judged.start_id) AS answered_start_id,
             coalesce(claimed.session_id, earlier_session_id, target_session_id) AS answered_session_id
      FROM judged
      LEFT JOIN claimed ON claimed.api_key_id = judged.api_key_id AND claimed.key = judged.idempotency_key
    ),
    opened AS (
      INSERT INTO sessions (id, organization_id, last_start_number, waiting_since)
      SELECT new_session_id, organization_id, 1, now() FROM outcome WHERE kind = 'accepted' AND session_id IS NULL
    ),
    counted AS (
      UPDATE sessions SET
        last_start_number = last_start_number + added.starts,
        waiting_since = CASE WHEN last_finished_number < last_start_number THEN waiting_since ELSE now() END
      FROM (
        SELECT session_id, count(*) AS starts FROM outcome
        WHERE kind = 'accepted' AND session_id IS NOT NULL GROUP BY session_id
      ) AS added
      WHERE sessions.id = added.session_id
      RETURNING sessions.id, last_start_number - added.starts AS last_number
    ),
    recorded AS (
      INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, trigger_id, input_message,
                          api_key_id, request_id)
      SELECT start_id, organization_id, workflow_id, target_session_id,
             coalesce(counted.last_number, 0) + row_number() OVER (PARTITION BY target_session_id ORDER BY place),
             'api', context, trigger_id, input_message, api_key_id, request_id
      FROM outcome LEFT JOIN counted ON counted.id = outcome.session_id
      WHERE kind = 'accepted'
    )
    SELECT kind, answered_start_id AS "startId", answered_session_id AS "sessionId" FROM outcome ORDER BY place`
}

const RECORD_STARTS: NamedStatement = { name: 'record-starts', text: recordStartsSql('') }
const RECORD_STARTS_WITHOUT_WAITING: NamedStatement = {
  name: 'record-starts-without-waiting',
  text: recordStartsSql('SKIP LOCKED'),
}

/**
 * The same for starts that all open a session of their own and have no Idempotency-Key, as most do: nothing can be in
 * their way but the workflow. Postgres takes longer to begin and end the statement above than to carry it out.
 */
const RECORD_STARTS_IN_NEW_SESSIONS: NamedStatement = {
  name: 'record-starts-in-new-sessions',
  text: `
    WITH request AS MATERIALIZED (
      SELECT * FROM ROWS FROM (json_to_recordset($1::json) AS (
        organization_id uuid, start_id uuid, workflow_id uuid, new_session_id uuid, context text, api_key_id uuid,
        request_id text
      )) WITH ORDINALITY AS request (
        organization_id, start_id, workflow_id, new_session_id, context, api_key_id, request_id, place
      )
    ),
    outcome AS MATERIALIZED (
      SELECT request.*, trigger.id AS trigger_id, trigger.input_message,
             CASE ${REFUSED_FOR_WORKFLOW_SQL} ELSE 'accepted' END AS kind
      FROM request ${WORKFLOW_AND_TRIGGER_SQL}
    ),
    opened AS (
      INSERT INTO sessions (id, organization_id, last_start_number, waiting_since)
      SELECT new_session_id, organization_id, 1, now() FROM outcome WHERE kind = 'accepted'
    ),
    recorded AS (
      INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, trigger_id, input_message,
                          api_key_id, request_id)
      SELECT start_id, organization_id, workflow_id, new_session_id, 1, 'api', context, trigger_id, input_message,
             api_key_id, request_id
      FROM outcome WHERE kind = 'accepted'
    )
    SELECT kind, start_id AS "startId", new_session_id AS "sessionId" FROM outcome ORDER BY place`,
}

/** For tests of how Postgres carries them out. */
export const START_STATEMENTS = {
  recordStarts: RECORD_STARTS,
  recordStartsInNewSessions: RECORD_STARTS_IN_NEW_SESSIONS,
} as const

interface OutcomeRow {
  kind: StartOutcome['kind']
  startId: string
  sessionId: string
}

/**
 * Checks and records one start in one round trip. When it resolves with `accepted`, the start is committed. When it
 * rejects, nothing is known: the start may or may not have been recorded.
 */
export async function recordStart(
  db: Pick<Database, 'pool'>,
  organizationId: string,
  start: NewStart,
): Promise<StartOutcome> {
  const [outcome] = await recordAll(db, RECORD_STARTS, [{ organizationId, start }])
  // Waited for and not there any more: it was deleted meanwhile.
  return outcome === undefined || outcome.kind === 'session_busy' ? { kind: 'session_not_found' } : outcome
}

/**
 * The same for many starts in one statement and one commit; no two of them may have the same Idempotency-Key. A start
 * whose session somebody else holds at this moment is `session_busy`, and not recorded: the others do not wait for it.
 */
export function recordStarts(
  db: Pick<Database, 'pool'>,
  starts: readonly { readonly organizationId: string; readonly start: NewStart }[],
): Promise<StartOutcome[]> {
  return recordAll(db, RECORD_STARTS_WITHOUT_WAITING, starts)
}

/** Forgets the Idempotency-Keys of more than 24 hours ago, at most `limit` of them, and says how many that were. */
export async function deleteOldIdempotencyKeys(db: Pick<Database, 'pool'>, limit: number): Promise<number> {
  // An array, because it is read once: with IN, Postgres may read it anew for each row, and forget more than the limit.
  // Rows that are locked stay where they are, so that their ctids find them.
  const { rowCount } = await db.pool.query(
    `DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM idempotency_keys
       WHERE created_at <= now() - interval '${IDEMPOTENCY_HOURS} hours'
       ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED
     ))`,
    [limit],
  )
  return rowCount ?? 0
}

async function recordAll(
  db: Pick<Database, 'pool'>,
  statement: NamedStatement,
  starts: readonly { readonly organizationId: string; readonly start: NewStart }[],
): Promise<StartOutcome[]> {
  const isEachByItself = starts.every(({ start }) => start.sessionId === null && start.idempotency === null)
  const { rows } = await runStatement<OutcomeRow>(db, isEachByItself ? RECORD_STARTS_IN_NEW_SESSIONS : statement, [
    JSON.stringify(starts.map(toRequest)),
  ])
  return rows.map(({ kind, startId, sessionId }) =>
    kind === 'accepted' || kind === 'replayed' ? { kind, startId, sessionId } : { kind },
  )
}

function toRequest({ organizationId, start }: { readonly organizationId: string; readonly start: NewStart }): object {
  return {
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
  }
}
