import type { JournalStep, TrialOut } from '@workflow-service/contract'
import { type Connection, type Db, deleteRows, insertMissing } from '../connection/index.ts'
import { isSessionVisible, isVisible, queryVisible, type Viewer } from '../organizations/index.ts'
import { type ClaimedAttempt, CLAIMED_RUN, type ClaimedRun, IS_LEASED } from './claimed-run.ts'
import { JOIN_API_TRIGGER } from './starts.ts'

/** A text that a person tries a workflow with. */
export interface NewTrial {
  readonly id: string
  readonly workflowId: string
  readonly userId: string
  /** The session whose earlier runs the agent reads; null for none. */
  readonly sessionId: string | null
  readonly context: string
  /** A `rules.yaml` in place of the workflow's; null for that. */
  readonly rules: string | null
}

/** Why a trial was not recorded. */
export type TrialRefusal = 'workflow_not_found' | 'session_not_found' | 'organization_suspended' | 'id_taken'

/** Executions of a trial: a runner that dies with it does not take the next ones along. */
export const MAX_TRIAL_ATTEMPTS = 2

/**
 * Records a trial in place of the person's earlier one of the workflow. Repeated with the same id, it changes nothing.
 */
export async function recordTrial(
  db: Db,
  { organizationId, memberId }: Viewer,
  { id, workflowId, userId, sessionId, context, rules }: NewTrial,
): Promise<'accepted' | TrialRefusal> {
  const { rows } = await insertMissing(() =>
    db.pool.query<{ kind: 'accepted' | TrialRefusal }>(
      `WITH checked AS MATERIALIZED (
       SELECT CASE
         WHEN organization.is_suspended THEN 'organization_suspended'
         WHEN workflow.id IS NULL THEN 'workflow_not_found'
         WHEN $6::uuid IS NOT NULL AND (session.id IS NULL OR NOT ${isSessionVisible('session', '$2')}) THEN 'session_not_found'
         WHEN EXISTS (SELECT FROM trials WHERE id = $3 AND (workflow_id, user_id) <> ($4, $5)) THEN 'id_taken'
         ELSE 'accepted'
       END AS kind
       FROM organizations AS organization
       LEFT JOIN workflows AS workflow
         ON workflow.organization_id = organization.id AND workflow.id = $4 AND ${isVisible('workflow', '$2')}
       LEFT JOIN sessions AS session ON session.organization_id = organization.id AND session.id = $6
       WHERE organization.id = $1
     ),
     recorded AS (
       INSERT INTO trials (id, organization_id, workflow_id, user_id, session_id, context, rules)
       SELECT $3, $1, $4, $5, $6, $7, $8 FROM checked WHERE kind = 'accepted'
       ON CONFLICT (workflow_id, user_id) DO UPDATE SET id = $3, session_id = $6, context = $7, rules = $8,
         created_at = now(), attempts = 0, lease_until = NULL, finished_at = NULL, error = NULL, steps = '[]'
       WHERE trials.id <> $3
     )
     SELECT kind FROM checked`,
      [organizationId, memberId, id, workflowId, userId, sessionId, context, rules],
    ),
  )
  return rows[0]?.kind ?? 'workflow_not_found'
}

/**
 * A trial of the person; undefined if a later one has replaced it, or if the person does not see its session any more:
 * the agent may have read a run that was added to it meanwhile.
 */
export async function findTrial(
  db: Connection,
  viewer: Viewer,
  { id, workflowId, userId }: Pick<NewTrial, 'id' | 'workflowId' | 'userId'>,
): Promise<TrialOut | undefined> {
  const text = `
    SELECT trials.id, trials.context, trials.created_at, trials.finished_at, trials.error, trials.steps
    FROM trials JOIN workflows AS workflow ON workflow.id = trials.workflow_id AND ${isVisible('workflow', '$2')}
    LEFT JOIN sessions AS session ON session.id = trials.session_id
    WHERE trials.organization_id = $1 AND trials.id = $3 AND trials.workflow_id = $4 AND trials.user_id = $5
      AND ${isSessionVisible('session', '$2')}`
  return (await queryVisible<TrialOut>(db, viewer, text, id, workflowId, userId))[0]
}

/** A trial that this process executes. */
export interface ClaimedTrial {
  readonly run: ClaimedRun
  readonly rules: string | null
}

/**
 * Claims the oldest trial that no process executes, for `leaseMs`: first of the organization of which the fewest are
 * under way. A person may try a thousand workflows, each for two minutes, and the runners have few slots for trials.
 * Passes over those of deleted workflows.
 */
export async function claimTrial(db: Db, leaseMs: number): Promise<ClaimedTrial | undefined> {
  // Named, as every runner sends it each second.
  const { rows } = await db.pool.query<ClaimedTrial>({
    name: 'claim-trial',
    text: `WITH leased AS (
       UPDATE trials SET attempts = attempts + 1, lease_until = clock_timestamp() + $1 * interval '1 ms'
       WHERE id = (
         SELECT trials.id FROM trials JOIN (
           SELECT id, row_number() OVER (
             PARTITION BY organization_id ORDER BY (lease_until >= clock_timestamp()) IS NOT TRUE, created_at
           ) AS number
           FROM trials WHERE finished_at IS NULL
             AND workflow_id <> ALL (ARRAY(SELECT id FROM workflows WHERE deleted_at IS NOT NULL))
         ) AS queue ON queue.id = trials.id
         WHERE finished_at IS NULL AND (lease_until IS NULL OR lease_until < clock_timestamp())
           AND NOT (SELECT is_suspended FROM organizations WHERE organizations.id = trials.organization_id)
         ORDER BY queue.number, created_at LIMIT 1 FOR UPDATE OF trials SKIP LOCKED
       ) RETURNING *
     ),
     claimed AS (
       SELECT leased.id, leased.organization_id, leased.workflow_id, coalesce(leased.session_id, leased.id) AS session_id,
         coalesce(sessions.last_start_number, 0) + 1 AS number, coalesce(trigger.input_message, '') AS input_message,
         leased.context, leased.rules, leased.created_at, leased.attempts, leased.id::text AS request_id,
         NULL AS traceparent, NULL AS tracestate, now() AS started_at, now() AS claimed_at
       FROM leased
       JOIN workflows AS workflow ON workflow.id = leased.workflow_id
       LEFT JOIN sessions ON sessions.id = leased.session_id
       ${JOIN_API_TRIGGER}
     )
     SELECT ${CLAIMED_RUN} AS run, claimed.rules FROM claimed JOIN workflows ON workflows.id = claimed.workflow_id`,
    values: [leaseMs],
  })
  return rows[0]
}

interface TrialResult extends ClaimedAttempt {
  readonly error: string | null
  readonly steps: readonly Pick<JournalStep, 'kind' | 'data'>[]
}

/** Records what the trial's run would do, unless the lease is lost, or a later trial has replaced it. */
export async function finishTrial(db: Db, { id, attempts, error, steps }: TrialResult): Promise<void> {
  const rows = steps.map(({ kind, data }, position) => ({ position, kind, data, created_at: new Date() }))
  await db.pool.query(
    `UPDATE trials SET finished_at = now(), lease_until = NULL, error = $3, steps = $4 WHERE ${IS_LEASED}`,
    [id, attempts, error, JSON.stringify(rows)],
  )
}

/** Gives a trial back, so that another process executes it at once, unless the lease is lost. */
export async function releaseTrial(db: Db, { id, attempts }: ClaimedAttempt): Promise<void> {
  await db.pool.query(`UPDATE trials SET lease_until = NULL, attempts = attempts - 1 WHERE ${IS_LEASED}`, [
    id,
    attempts,
  ])
}

/** Deletes trials that are older than an hour. */
export async function deleteOldTrials(db: Db, limit: number): Promise<number> {
  const where = `created_at < now() - interval '1 hour' ORDER BY created_at`
  return await deleteRows(db, { table: 'trials', where }, limit)
}
