import type { NoteCode } from '@workflow-service/contract'
import type { PoolClient } from 'pg'
import { type Connection, type Db, inTransaction, NIL_UUID } from '../connection/index.ts'
import { recordAuditEvent } from '../organizations/index.ts'

/** A request to a model, for which money is reserved. All amounts are millionths of the currency. */
export interface CostRequest {
  readonly organizationId: string
  readonly workflowId: string
  readonly runId: string
  /** The number of the answer in the run; 0: a summary of the session, which the run can do without. */
  readonly turn: number
  /** What the request may cost at most. */
  readonly amount: number
  /** What the answers of the run have cost so far. */
  readonly runSpent: number
  /** After this, the runner counts as ended. */
  readonly expiresInMs: number
}

type BudgetScope = 'run' | 'day' | 'month'

/** What is spent of a budget. */
export interface SpentBudget {
  readonly scope: BudgetScope
  readonly budget: number
  readonly spent: number
}

/** Whether a request may begin. `waitMs`: when the next day or month begins, if the run is to wait for it. */
export type CostReservation =
  | { readonly kind: 'reserved' }
  /** Requests under way may use up the rest of a budget: ask again when they have ended. */
  | { readonly kind: 'busy' }
  | ({ readonly kind: 'exceeded'; readonly waitMs: number | null } & SpentBudget)

const NOTICE_SHARE = 0.8

/**
 * Reserves the cost of a request. A request begins as long as what is spent and reserved is below each budget, so that
 * a budget is exceeded by the cost of one answer at most. A summary begins only if half of the budget of the run that
 * is left is enough for it: the run needs the rest for its answers. Requests of one organization are decided one after
 * another. A reservation of the same run, whose runner has ended, is replaced; that of a run that was cancelled ends.
 * One that has expired holds no money, but is left for a day: during an outage, its runner cannot write the answer.
 */
export async function reserveCost(db: Db, request: CostRequest): Promise<CostReservation> {
  const { organizationId, workflowId, runId, turn, amount, expiresInMs } = request
  return await inTransaction(db, async (client) => {
    await client.query(LOCK_ORGANIZATION, [organizationId])
    // A snapshot that is taken under the lock: the next statements see what the holder before wrote.
    const left = await client.query<Reservation>(TAKE_ENDED, [organizationId, runId])
    for (const reservation of left.rows) await settleFromJournal(client, reservation)
    const { rows } = await client.query<State>(READ_STATE, [organizationId, workflowId])
    const state = rows[0]
    if (!state) return { kind: 'reserved' }
    const decision = decide(state, request)
    if (decision.kind === 'reserved') {
      await client.query(INSERT_RESERVATION, [runId, organizationId, workflowId, turn, amount, expiresInMs])
    }
    return decision
  })
}

interface Reservation {
  readonly runId: string
  readonly organizationId: string
  readonly workflowId: string
  readonly turn: number
  readonly day: string
}

interface State {
  readonly runBudget: number | null
  readonly whenSpent: string
  /** The running month of the organization, and the day of the workflow. */
  readonly periods: readonly {
    readonly scope: 'month' | 'day'
    readonly budget: number | null
    readonly spent: number
    readonly reserved: number
    readonly endsInMs: number
  }[]
}

function decide({ runBudget, whenSpent, periods }: State, { turn, amount, runSpent }: CostRequest): CostReservation {
  const isTooMuch = runBudget !== null && turn === 0 && amount > (runBudget - runSpent) / 2
  if (runBudget !== null && (runSpent >= runBudget || isTooMuch)) {
    return { kind: 'exceeded', scope: 'run', budget: runBudget, spent: runSpent, waitMs: null }
  }
  for (const { scope, budget, spent, endsInMs } of periods) {
    if (budget === null || spent < budget) continue
    return { kind: 'exceeded', scope, budget, spent, waitMs: whenSpent === 'wait' ? endsInMs : null }
  }
  const isBusy = periods.some(({ budget, spent, reserved }) => budget !== null && spent + reserved >= budget)
  return isBusy ? { kind: 'busy' } : { kind: 'reserved' }
}

/**
 * Ends the reservation of an answer, which cost this; 0 without an answer. Does nothing if it has ended. Resolves to
 * the budgets of which 80 % are spent since, each of which has an audit event.
 */
export async function settleCost(
  db: Db,
  { organizationId, runId, turn, cost }: Pick<CostRequest, 'organizationId' | 'runId' | 'turn'> & { cost: number },
): Promise<SpentBudget[]> {
  return await inTransaction(db, async (client) => {
    await client.query(LOCK_ORGANIZATION, [organizationId])
    const { rows } = await client.query<Reservation>(
      `DELETE FROM model_reservations WHERE run_id = $1 AND turn = $2 RETURNING ${RESERVATION}`,
      [runId, turn],
    )
    return rows[0] ? await spend(client, rows[0], cost) : []
  })
}

/** What the journal says that the answer has cost; nothing if the runner died before it got one. */
async function settleFromJournal(client: PoolClient, reservation: Reservation): Promise<void> {
  const { rows } = await client.query<{ cost: number | null }>(
    `SELECT (data->>'cost_micros')::float8 AS cost FROM run_steps
     WHERE run_id = $1 AND kind IN ('model_answer', 'session_summary') AND (data->>'turn')::integer = $2`,
    [reservation.runId, reservation.turn],
  )
  await spend(client, reservation, rows[0]?.cost ?? 0)
}

async function spend(
  client: PoolClient,
  { organizationId, workflowId, day }: Reservation,
  cost: number,
): Promise<SpentBudget[]> {
  if (cost === 0) return []
  const { rows } = await client.query<Omit<SpentBudget, 'budget'> & { budget: number | null; name: string }>(SPEND, [
    organizationId,
    workflowId,
    day,
    cost,
  ])
  const nearly = rows.flatMap(({ scope, budget, spent, name }) =>
    budget !== null && spent >= NOTICE_SHARE * budget && spent - cost < NOTICE_SHARE * budget
      ? [{ scope, budget, spent, name }]
      : [],
  )
  for (const { scope, budget, spent, name } of nearly) {
    await recordAuditEvent(client, {
      actor: { kind: 'service', name: 'runner' },
      organizationId,
      action: 'budget.nearly_spent',
      target:
        scope === 'day'
          ? { kind: 'workflow', id: workflowId, name }
          : { kind: 'organization', id: organizationId, name },
      changes: [{ field: `${scope}_budget`, old: budget, new: spent }],
    })
  }
  return nearly
}

const SPENT_NOTE: NoteCode = 'budget_spent'

/** Sessions of one statement. */
const MAX_WOKEN = 1_000

/**
 * Makes sessions acquirable whose next run waits for a budget, of the organization or of one workflow, at most 1,000:
 * those budgets may have been raised. The others ask again within 10 minutes. Safe to repeat.
 */
export async function wakeSpentSessions(
  { pool }: Connection,
  organizationId: string,
  workflowId: string | null = null,
): Promise<void> {
  await pool.query(
    `UPDATE sessions SET waiting_since = now() WHERE id = ANY (ARRAY(
       SELECT session.id FROM sessions AS session
       JOIN starts AS run ON run.session_id = session.id AND run.number = session.last_finished_number + 1
       WHERE session.organization_id = $1 AND session.last_finished_number < session.last_start_number
         AND session.waiting_since > now() AND session.lease_owner IS NULL AND session.paused_source_id IS NULL
         AND run.status = 'queued' AND ($2::uuid IS NULL OR run.workflow_id = $2)
         AND EXISTS (
           SELECT FROM run_steps WHERE run_id = run.id AND kind = 'note' AND data ->> 'code' = '${SPENT_NOTE}'
         )
       LIMIT ${MAX_WOKEN} FOR NO KEY UPDATE OF session SKIP LOCKED
     ))`,
    [organizationId, workflowId],
  )
}

const RESERVATION = `run_id AS "runId", organization_id AS "organizationId", workflow_id AS "workflowId", turn, day::text`

const TODAY = `(now() AT TIME ZONE 'UTC')::date`

const MONTH = `date_trunc('month', now() AT TIME ZONE 'UTC')::date`

/** Its row of this month, whose lock every reservation and settlement of the organization takes first. */
const LOCK_ORGANIZATION = `
  INSERT INTO model_spending (organization_id, workflow_id, period, spent)
  SELECT id, '${NIL_UUID}', ${MONTH}, 0 FROM organizations WHERE id = $1
  ON CONFLICT (organization_id, workflow_id, period) DO UPDATE SET spent = model_spending.spent`

// Not EXISTS, for which PostgreSQL may read and hash all runs.
const TAKE_ENDED = `
  DELETE FROM model_reservations WHERE organization_id = $1 AND (run_id = $2 OR expires_at < now() - interval '1 day'
    OR (SELECT finished_at FROM starts WHERE id = run_id) IS NOT NULL)
  RETURNING ${RESERVATION}`

const READ_STATE = `
  SELECT workflow.run_budget::float8 AS "runBudget", workflow.when_spent AS "whenSpent", json_build_array(
    json_build_object('scope', 'month', 'budget', organization.month_budget, 'spent', coalesce((
      SELECT spent FROM model_spending
      WHERE organization_id = $1 AND workflow_id = '${NIL_UUID}' AND period = ${MONTH}
    ), 0), 'reserved', (
      SELECT coalesce(sum(amount), 0) FROM model_reservations
      WHERE organization_id = $1 AND day >= ${MONTH} AND expires_at >= now()
    ), 'endsInMs', 1000 * extract(epoch FROM ${MONTH} + interval '1 month' - now() AT TIME ZONE 'UTC')),
    json_build_object('scope', 'day', 'budget', workflow.day_budget, 'spent', coalesce((
      SELECT spent FROM model_spending WHERE organization_id = $1 AND workflow_id = $2 AND period = ${TODAY}
    ), 0), 'reserved', (
      SELECT coalesce(sum(amount), 0) FROM model_reservations
      WHERE organization_id = $1 AND workflow_id = $2 AND day = ${TODAY} AND expires_at >= now()
    ), 'endsInMs', 1000 * extract(epoch FROM ${TODAY} + 1 - now() AT TIME ZONE 'UTC'))
  ) AS periods
  FROM workflows AS workflow JOIN organizations AS organization ON organization.id = workflow.organization_id
  WHERE workflow.organization_id = $1 AND workflow.id = $2`

const INSERT_RESERVATION = `
  INSERT INTO model_reservations (run_id, organization_id, workflow_id, turn, day, amount, expires_at)
  VALUES ($1, $2, $3, $4, ${TODAY}, $5, now() + $6 * interval '1 millisecond')`

/** Of the day of the reservation, also if it ended after midnight. */
const SPEND = `
  WITH spent AS (
    INSERT INTO model_spending (organization_id, workflow_id, period, spent)
    VALUES ($1, '${NIL_UUID}', date_trunc('month', $3::date)::date, $4), ($1, $2, $3::date, $4)
    ON CONFLICT (organization_id, workflow_id, period) DO UPDATE SET spent = model_spending.spent + excluded.spent
    RETURNING workflow_id, spent
  )
  SELECT CASE WHEN spent.workflow_id = $2 THEN 'day' ELSE 'month' END AS scope, spent.spent::float8 AS spent,
    (CASE WHEN spent.workflow_id = $2 THEN workflow.day_budget ELSE organization.month_budget END)::float8 AS budget,
    CASE WHEN spent.workflow_id = $2 THEN workflow.name ELSE organization.name END AS name
  FROM spent JOIN organizations AS organization ON organization.id = $1
    LEFT JOIN workflows AS workflow ON workflow.id = $2`
