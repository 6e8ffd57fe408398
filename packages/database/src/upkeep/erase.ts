import { type Database, type Db, foldCase, inTransaction, type paging, type Queryable } from '../connection/index.ts'
import { deleteFromSearch, ERROR_CODE, operatorOf, recordAuditEvent } from '../organizations/index.ts'
import { deleteUser, EMAIL_KEY } from '../people/index.ts'
import { NOTICES_LOCK } from './notices.ts'

/** A user that is one person, by its id or an email address. */
export interface PersonUser {
  readonly id: string
  readonly accountId: string | null
  readonly email: string
  readonly organizationId: string
  readonly organizationName: string
  /** Whether it was removed before: the audit log has it still. */
  readonly isRemoved: boolean
  /** What is recorded as the name of the person. */
  readonly names: readonly string[]
}

/** What the audit log and the journals name in place of an erased person. */
const ERASED_NAME = 'erased person'

/**
 * The users of a person in all organizations: with this id or address, or of the account that signs in with it; also
 * those that were removed before, by their last address.
 */
export async function findUsersOfPerson(db: Db, given: { id: string } | { email: string }): Promise<PersonUser[]> {
  const [isPerson, isRemovedPerson] =
    'id' in given
      ? ['users.id = $1', 'target_id = $1']
      : [
          `(${EMAIL_KEY} = $1 OR account_id IN (SELECT id FROM accounts WHERE accounts.email_key = $1))`,
          'lower(target_name) = lower($2)',
        ]
  const { rows } = await db.pool.query<PersonUser>(
    `SELECT users.id, account_id AS "accountId", users.email, organization_id AS "organizationId", organizations.name AS "organizationName",
       false AS "isRemoved",
       ARRAY[users.email, trim(first_name || ' ' || last_name), (SELECT name FROM accounts WHERE id = account_id)] AS names
     FROM users JOIN organizations ON organizations.id = organization_id
     WHERE deleted_at IS NULL AND ${isPerson}
     UNION SELECT target_id, (
         SELECT target_id FROM audit_events AS sign_in
         WHERE organization_id = organizations.id AND actor_id = removed.target_id AND action = 'account.signed_in' LIMIT 1
       ), target_name, organization_id, organizations.name, true, ARRAY[target_name]
     FROM organizations JOIN audit_events AS removed ON organization_id = organizations.id AND action = 'user.removed'
     WHERE deleted_at IS NULL AND ${isRemovedPerson} AND NOT EXISTS (
       SELECT FROM audit_events AS erased WHERE organization_id = organizations.id AND target_id = removed.target_id
         AND action = 'user.erased' AND erased.at >= removed.at
     )
     ORDER BY "organizationName", "isRemoved", id`,
    'id' in given ? [given.id] : [foldCase(given.email), given.email],
  )
  return rows
}

/**
 * Deletes a user, with the account if no other organization has it, and what names the person: the audit log keeps who
 * (as an id), what and when, without names, addresses and the values of changes of the person. What customers sent,
 * such as contexts and payloads, stays: see `deleteRun`. In one transaction: names are found by the user's row.
 * `session_busy`: a run may have read the name from a run before it.
 */
export async function eraseUser(db: Database, user: PersonUser): Promise<'erased' | 'last_owner' | 'session_busy'> {
  const erase = async (tx: Queryable) => {
    const declined = `SELECT session_id FROM approvals JOIN starts ON starts.id = run_id
      WHERE decided_by = $1 AND approvals.status = 'declined'`
    if (await isAnyLeased(tx, declined, user.id)) throw new SessionBusyError()
    await eraseNames(tx, user)
  }
  try {
    // A manifest may have made a user with the id of a removed one.
    const outcome = user.isRemoved
      ? undefined
      : await deleteUser(db, user.id, () => {}, operatorOf(user.organizationId), erase)
    if (outcome === 'last_owner') return 'last_owner'
    // Removed before, or meanwhile by another person.
    if (outcome === undefined) await inTransaction(db, erase)
    return 'erased'
  } catch (error) {
    if (error instanceof SessionBusyError) return 'session_busy'
    throw error
  }
}

/** Rolls back a transaction. */
class SessionBusyError extends Error {
  override name = 'SessionBusyError'
}

/**
 * Whether a runner works on one of the sessions, whose ids the query gives. Until the transaction ends, no runner
 * acquires them.
 */
async function isAnyLeased(client: Queryable, sessionIds: string, value: string): Promise<boolean> {
  const { rows } = await client.query<{ isLeased: boolean }>(
    `SELECT lease_owner IS NOT NULL AS "isLeased" FROM sessions WHERE id IN (${sessionIds})
     ORDER BY id FOR NO KEY UPDATE`,
    [value],
  )
  return rows.some(({ isLeased }) => isLeased)
}

async function eraseNames(client: Queryable, user: PersonUser): Promise<void> {
  const { id, organizationId, accountId } = user
  const values = [organizationId, id, ERASED_NAME]
  // Earlier names, too.
  const { rows: acted } = await client.query<{ name: string }>(
    'SELECT DISTINCT actor_name AS name FROM audit_events WHERE organization_id = $1 AND actor_id = $2',
    [organizationId, id],
  )
  const names = [...user.names, ...acted.map(({ name }) => name)].filter(Boolean)
  await client.query(
    `UPDATE audit_events SET actor_name = $3, address = NULL WHERE organization_id = $1 AND actor_id = $2`,
    values,
  )
  const emails = await listEmails(client, user)
  // Changes of the user; sign-ins and changes of the account, also those that failed. Another person's address stays. A
  // link that was made in another organization has its user, which is none of this one's.
  await client.query(
    `UPDATE audit_events SET target_name = $3, changes = '[]', address = CASE WHEN actor_id IS NOT NULL THEN address END
     WHERE (organization_id = $1 OR organization_id IS NULL)
       AND (target_kind = 'account' AND target_id = $4 OR target_kind = 'user' AND (target_id = $2
         OR organization_id = $1 AND lower(target_name) = ANY (ARRAY(SELECT lower(email) FROM unnest($5::text[]) AS email))
           AND target_id <> ALL (ARRAY(SELECT users.id FROM users WHERE users.organization_id = $1))))`,
    [...values, accountId, emails],
  )
  // Lists of the users of a workflow, and attempts to sign in with the address. Another user may have it in another
  // case.
  for (const email of emails) {
    await client.query(
      `UPDATE audit_events SET changes = replace(changes::text, to_json($2::text)::text, to_json($3::text)::text)::json,
         actor_name = CASE WHEN lower(actor_name) = lower($2) THEN $3 ELSE actor_name END,
         target_name = CASE WHEN lower(target_name) = lower($2)
           AND NOT (target_kind = 'user' AND EXISTS (SELECT FROM users WHERE users.id = target_id)) THEN $3 ELSE target_name END
       WHERE organization_id = $1 AND (strpos(changes::text, to_json($2::text)::text) > 0
         OR lower(actor_name) = lower($2) OR lower(target_name) = lower($2))`,
      [organizationId, email, ERASED_NAME],
    )
  }
  await eraseInTexts(client, user, names)
  for (const { table, column, hasId } of await listNameColumns(client)) {
    const isPerson = hasId ? `${column.replace(/_name$/, '')} = $3` : `${column} = ANY ($3)`
    await client.query(
      `UPDATE ${table} SET ${column} = $2 WHERE organization_id = $1 AND ${isPerson} AND ${column} IS NOT NULL`,
      [organizationId, ERASED_NAME, hasId ? id : names],
    )
  }
  const target = { kind: 'user' as const, id, name: ERASED_NAME }
  await recordAuditEvent(client, { ...operatorOf(organizationId), action: 'user.erased', target })
}

/** The address of the user, and those that the account had before, unless another user of the organization has them. */
async function listEmails(client: Queryable, { email, organizationId, accountId }: PersonUser): Promise<string[]> {
  const { rows } = await client.query<{ email: string }>(
    `SELECT $3 AS email WHERE NOT EXISTS (SELECT FROM users WHERE users.organization_id = $1 AND users.email = $3)
     UNION SELECT of.email FROM audit_events
     CROSS JOIN LATERAL jsonb_path_query(changes::jsonb, '$[*] ? (@.field == "email")') AS change
     CROSS JOIN LATERAL (VALUES (change->>'old'), (change->>'new')) AS of (email)
     WHERE organization_id = $1 AND target_kind = 'account' AND target_id = $2 AND of.email IS NOT NULL AND of.email <> $3
       AND NOT EXISTS (SELECT FROM users WHERE users.organization_id = $1 AND lower(users.email) = lower(of.email))`,
    [organizationId, accountId, email],
  )
  return rows.map((row) => row.email)
}

/** Of journals, prompts and errors of runs, versions of workflows, and notices. */
async function eraseInTexts(client: Queryable, { id, organizationId }: PersonUser, names: readonly string[]) {
  const values = [organizationId, id, ERASED_NAME]
  await client.query(
    `UPDATE run_steps SET data = jsonb_set(data::jsonb, '{decided_by}', to_jsonb($3::text))::json
     FROM approvals WHERE approvals.organization_id = $1 AND decided_by = $2 AND run_steps.run_id = approvals.run_id
       AND kind = 'approval_decision' AND data ->> 'delivery_id' = approvals.delivery_id::text`,
    values,
  )
  const [old, erased] = [`': ' || decided_by_name || ' declined '`, `': ' || $3::text || ' declined '`]
  await client.query(
    `UPDATE run_steps SET data = jsonb_set(data::jsonb, '{text}', to_jsonb(replace(data ->> 'text', ${old}, ${erased})))::json
     FROM approvals WHERE approvals.organization_id = $1 AND decided_by = $2 AND run_steps.run_id = approvals.run_id
       AND kind = 'tool_result' AND data ->> 'error' = 'delivery_declined' AND strpos(data ->> 'text', ${old}) > 0`,
    values,
  )
  await client.query(
    `UPDATE starts SET error = replace(error, ${old}, ${erased})
     FROM approvals WHERE approvals.organization_id = $1 AND decided_by = $2 AND starts.id = approvals.run_id
       AND strpos(error, ${old}) > 0`,
    values,
  )
  await clearSummaries(
    client,
    `EXISTS (SELECT FROM approvals JOIN starts AS decided ON decided.id = approvals.run_id
       WHERE approvals.organization_id = $1 AND decided_by = $2 AND decided.session_id = run.session_id
         AND decided.number <= through)`,
    [organizationId, id],
  )
  // Prompts of later runs have the session so far.
  const [oldJson, erasedJson] = [old, erased].map((text) => `left(right(to_json(${text})::text, -1), -1)`)
  await client.query(
    `UPDATE run_prompts SET prompt = replace(prompt::text, ${oldJson}, ${erasedJson})::json
     FROM approvals JOIN starts AS decided ON decided.id = approvals.run_id
     JOIN starts AS run ON run.session_id = decided.session_id
     WHERE approvals.organization_id = $1 AND decided_by = $2 AND run_prompts.run_id = run.id
       AND strpos(prompt::text, ${oldJson}) > 0`,
    values,
  )
  await client.query(
    `UPDATE workflow_versions SET saved_by = $2 FROM workflows
     WHERE workflows.organization_id = $1 AND workflow_id = workflows.id AND saved_by = ANY ($3)`,
    [organizationId, ERASED_NAME, names],
  )
  await client.query('DELETE FROM notices WHERE organization_id = $1 AND user_id = $2', [organizationId, id])
  await client.query(
    `UPDATE notices SET body = jsonb_set(body::jsonb, '{text}', to_jsonb(
       replace(body ->> 'text', ' paused by ' || name || ': ', ' paused by ' || $2::text || ': ')))::json
     FROM unnest($3::text[]) AS name WHERE organization_id = $1 AND body ->> 'type' = 'notice.source_paused'
       AND strpos(body ->> 'text', ' paused by ' || name || ': ') > 0`,
    [organizationId, ERASED_NAME, names],
  )
}

/**
 * Empties the summaries of earlier runs for which the condition holds, on `run` and on `through`, the number of the
 * last run in the summary, and deletes the prompts of the runs that may have read them. Their costs stay.
 */
async function clearSummaries(client: Queryable, condition: string, values: readonly unknown[]): Promise<void> {
  await client.query(
    `WITH summary AS (
       SELECT run.session_id, run.number, step.run_id, step.position
       FROM starts AS run JOIN run_steps AS step ON step.run_id = run.id AND step.kind = 'session_summary'
       CROSS JOIN LATERAL (SELECT (step.data ->> 'through')::bigint AS through) AS until
       WHERE run.organization_id = $1 AND ${condition}
     ),
     cleared AS (
       UPDATE run_steps AS step SET data = jsonb_set(data::jsonb, '{text}', '""')::json
       FROM summary WHERE step.run_id = summary.run_id AND step.position = summary.position
     )
     DELETE FROM run_prompts USING starts AS run, summary
     WHERE run.session_id = summary.session_id AND run.number >= summary.number AND run_prompts.run_id = run.id`,
    [...values],
  )
}

/** The columns such as `cancelled_by_name` with the name of a person whose id is in `cancelled_by`, if there is one. */
async function listNameColumns(client: Queryable) {
  const { rows } = await client.query<{ table: string; column: string; hasId: boolean }>(
    `SELECT table_name AS table, column_name AS column, EXISTS (
       SELECT FROM information_schema.columns AS id WHERE id.table_schema = named.table_schema
         AND id.table_name = named.table_name AND id.column_name = replace(named.column_name, '_by_name', '_by')
     ) AS "hasId"
     FROM information_schema.columns AS named
     WHERE table_schema = current_schema() AND column_name LIKE '%\\_by\\_name'`,
  )
  return rows
}

/** The topic of `readFacts` is for the index: there may be an event for each run of the last 30 days. */
const DELETE_FROM_NOTICES = `
  UPDATE notices SET body = jsonb_set(
    body::jsonb, '{text}', to_jsonb(replace(body ->> 'text', start.error, 'The run was deleted.')))::json
  FROM starts AS start
  WHERE start.id = $2 AND notices.organization_id = $1
    AND notices.topic = 'failures run_failed ' || start.workflow_id || ' ' || ${ERROR_CODE} || ' null'
    AND body -> 'data' ->> 'newest_id' = start.id::text AND strpos(body ->> 'text', start.error) > 0`

/**
 * Deletes a run that has ended with its journal, prompts, approvals, deliveries and cases, its error in notices, and
 * what later runs of the session were asked with it: their prompts, and summaries. The audit log keeps its id.
 * `session_busy`: a later run may have read it.
 */
export async function deleteRun(db: Db, id: string): Promise<'deleted' | 'not_found' | 'not_ended' | 'session_busy'> {
  return await inTransaction(db, async (client) => {
    const isBusy = await isAnyLeased(client, 'SELECT session_id FROM starts WHERE id = $1', id)
    const { rows } = await client.query<{
      organizationId: string
      sessionId: string
      number: string
      createdAt: Date
      hasEnded: boolean
    }>(
      `SELECT organization_id AS "organizationId", session_id AS "sessionId", number, created_at AS "createdAt",
         finished_at IS NOT NULL AS "hasEnded"
       FROM starts WHERE id = $1 FOR UPDATE`,
      [id],
    )
    const [run] = rows
    if (!run) return 'not_found'
    if (!run.hasEnded) return 'not_ended'
    if (isBusy) return 'session_busy'
    const { organizationId, sessionId, number, createdAt } = run
    const deliveries = await client.query<paging.TimePosition>(
      'DELETE FROM deliveries WHERE organization_id = $1 AND run_id = $2 RETURNING id, created_at AS "createdAt"',
      [organizationId, id],
    )
    await deleteFromSearch(client, { organizationId, kind: 'deliveries' }, deliveries.rows)
    await clearSummaries(client, 'run.session_id = $2 AND run.number > $3 AND through >= $3', [
      organizationId,
      sessionId,
      number,
    ])
    await client.query(
      'DELETE FROM run_prompts USING starts WHERE starts.session_id = $1 AND number > $2 AND run_id = starts.id',
      [sessionId, number],
    )
    await client.query('DELETE FROM cases WHERE run_id = $1', [id])
    // One that is being recorded may have the error, too.
    await client.query(`SELECT pg_advisory_xact_lock(${NOTICES_LOCK})`, [organizationId])
    await client.query(DELETE_FROM_NOTICES, [organizationId, id])
    await client.query('DELETE FROM starts WHERE id = $1', [id])
    await deleteFromSearch(client, { organizationId, kind: 'runs' }, [{ id, createdAt }])
    const target = { kind: 'run' as const, id, name: null }
    await recordAuditEvent(client, { ...operatorOf(run.organizationId), action: 'run.deleted', target })
    return 'deleted'
  })
}

/** Deletes a delivery. That of a run is only deleted with it: the journal has the payload, too. */
export async function deleteDelivery(
  db: Db,
  id: string,
): Promise<{ kind: 'deleted' | 'not_found' | 'in_flight' } | { kind: 'of_run'; runId: string }> {
  return await inTransaction(db, async (client) => {
    const { rows } = await client.query<{
      organizationId: string
      outcome: string
      createdAt: Date
      runId: string | null
    }>(
      `SELECT organization_id AS "organizationId", outcome, created_at AS "createdAt",
         (SELECT id FROM starts WHERE id = run_id) AS "runId" FROM deliveries WHERE id = $1 FOR UPDATE`,
      [id],
    )
    const [delivery] = rows
    if (!delivery) return { kind: 'not_found' }
    const { organizationId, outcome, createdAt, runId } = delivery
    if (outcome === 'in_flight') return { kind: 'in_flight' }
    if (runId !== null) return { kind: 'of_run', runId }
    await client.query('DELETE FROM deliveries WHERE id = $1', [id])
    await deleteFromSearch(client, { organizationId, kind: 'deliveries' }, [{ id, createdAt }])
    const target = { kind: 'delivery' as const, id, name: null }
    await recordAuditEvent(client, { ...operatorOf(organizationId), action: 'delivery.deleted', target })
    return { kind: 'deleted' }
  })
}
