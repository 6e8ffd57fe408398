import { setImmediate } from 'node:timers/promises'
import type { JournalStep, SessionSummaryStep } from '@workflow-service/contract'
import {
  column,
  type Db,
  listsOf,
  queryRows,
  type RowOfColumns,
  type RowOfStatement,
  runStatement,
  statement,
} from '../connection/index.ts'
import type { Lease } from '../deliveries/index.ts'
import { CLAIMED_RUN, type ClaimedRun, MAX_RUN_ATTEMPTS } from './claimed-run.ts'
import { groupSteps, STEP_COLUMNS } from './journal.ts'

const CLAIM_NEXT_RUN = statement(
  'runs/claim-next-run',
  { number: column.float8, hasWork: column.boolean, run: column.json<ClaimedRun>().orNull },
  { CLAIMED_RUN },
)

const SKIP_ENDED_START = statement('runs/skip-ended-start', {})

/** What the owner of a lease does next. */
export type NextRun =
  | { readonly kind: 'run'; readonly run: ClaimedRun }
  /** The lease is the caller's, and the session has no work. */
  | { readonly kind: 'idle' }
  | { readonly kind: 'lease_lost' }

/** Claims the session's next start in number order. Skips those that were cancelled, or deleted with their workflow. */
export async function claimNextRun(db: Db, owner: string, lease: Lease): Promise<NextRun> {
  const values = [owner, lease.sessionId, lease.epoch]
  for (;;) {
    const { rows } = await runStatement(db, CLAIM_NEXT_RUN, values)
    const [row] = rows
    if (!row) return { kind: 'lease_lost' }
    if (!row.hasWork) return { kind: 'idle' }
    if (row.run) return { kind: 'run', run: row.run }
    await runStatement(db, SKIP_ENDED_START, [...values, row.number])
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

const FINISH_RUNS = statement(
  'runs/finish-runs',
  { sessionId: column.uuid, isReleased: column.boolean, next: column.json<ClaimedRun>().orNull },
  { CLAIMED_RUN },
)

/**
 * Finishes runs of any number of sessions in one statement, each only under its own lease. Claims each session's next
 * start, or releases the session when it has none.
 */
export async function finishRuns(
  db: Db,
  owner: string,
  runs: readonly FinishedRun[],
): Promise<readonly FinishOutcome[]> {
  const ended = runs.map(({ lease, ...run }) => ({ ...lease, ...run }))
  const lists = listsOf(ended, 'sessionId', 'epoch', 'number', 'status', 'error', 'shouldClaimNext')
  const { rows } = await runStatement(db, FINISH_RUNS, [owner, ...lists, MAX_RUN_ATTEMPTS])
  const finished = new Map(rows.map((row) => [row.sessionId, row]))
  return runs.map(({ lease }): FinishOutcome => {
    const row = finished.get(lease.sessionId)
    return row ? { kind: 'finished', next: row.next, isReleased: row.isReleased } : { kind: 'lease_lost' }
  })
}

const COUNT_ATTEMPT = statement('runs/count-attempt', { attempts: column.integer })

/** Increments the attempt counter of the running run. Resolves to the new count, or undefined if the lease was lost. */
export async function countAttempt(db: Db, owner: string, lease: Lease): Promise<number | undefined> {
  const values = [owner, lease.sessionId, lease.epoch]
  const { rows } = await runStatement(db, COUNT_ATTEMPT, values)
  return rows[0]?.attempts
}

const LIST_EARLIER_RUNS = statement('runs/list-earlier-runs', {
  runId: column.uuid,
  /** Its number in the session. */
  number: column.float8,
  workflowName: column.text(),
  inputMessage: column.text(),
  context: column.text(),
  status: column.text<'succeeded' | 'failed' | 'cancelled'>(),
  error: column.text().orNull,
  bytes: column.float8,
})

/** Bytes of the journals of earlier runs that are read together: more than the largest share of a prompt needs. */
const EARLIER_RUNS_MAX_BYTES = 8 * 1_048_576
/** Of one of them: a larger one leaves room for others. */
const EARLIER_RUN_MAX_BYTES = 4 * 1_048_576

/** Characters of JSON. */
const MAX_PARSED_PER_TURN = 1_048_576

const READ_EARLIER_STEPS = statement(
  'runs/read-earlier-steps',
  { ...STEP_COLUMNS, data: column.text().orNull, earlierSteps: column.text().orNull },
  { MAX_BYTES: EARLIER_RUNS_MAX_BYTES, RUN_MAX_BYTES: EARLIER_RUN_MAX_BYTES },
)

/** An earlier run of a session. */
export type EarlierRun = Omit<RowOfStatement<typeof LIST_EARLIER_RUNS>, 'bytes'> & {
  /** None if the retention has deleted them. */
  readonly steps: readonly JournalStep[]
  /** Whether the journal has steps that were not read, and none is in `steps`. */
  readonly isTooLarge?: boolean
}

/**
 * The newest `limit` finished runs of the session before run `number`, oldest first, with their journals: those of 4
 * MiB at most, and no more than the newest 8 MiB in all.
 */
export async function listEarlierRuns(
  db: Db,
  organizationId: string,
  { sessionId, number, limit }: { readonly sessionId: string; readonly number: number; readonly limit: number },
): Promise<readonly EarlierRun[]> {
  const { rows: runs } = await runStatement(db, LIST_EARLIER_RUNS, [organizationId, sessionId, number, limit])
  // What is stored compressed is larger when it is read, never smaller.
  let left = EARLIER_RUNS_MAX_BYTES
  const small = runs.filter(({ bytes }) => bytes <= EARLIER_RUN_MAX_BYTES && (left -= bytes) >= 0)
  const ids = small.map(({ runId }) => runId)
  const tooLarge = new Set(runs.flatMap(({ runId }) => (ids.includes(runId) ? [] : [runId])))
  const { rows: steps } = await runStatement(db, READ_EARLIER_STEPS, [ids])
  for (const { runId, data } of steps) if (data === null) tooLarge.add(runId)
  const read: RowOfColumns<typeof STEP_COLUMNS>[] = []
  let characters = 0
  for (const { data, earlierSteps, ...step } of steps) {
    if (data === null || tooLarge.has(step.runId)) continue
    read.push({ ...step, data: JSON.parse(data), earlierSteps: JSON.parse(earlierSteps ?? 'null') })
    characters += data.length
    // All of them in one turn of the event loop would hold up other runs.
    if (characters > MAX_PARSED_PER_TURN) {
      characters = 0
      await setImmediate()
    }
  }
  const journals = groupSteps(read)
  return runs.toReversed().map(({ bytes: _bytes, ...run }) => {
    const isTooLarge = tooLarge.has(run.runId)
    return { ...run, steps: journals.get(run.runId) ?? [], ...(isTooLarge && { isTooLarge }) }
  })
}

/** Runs before a run that are searched for a summary. */
const SUMMARY_SEARCH_RUNS = 1_000

/** The newest summary that was not emptied, in the journals of the session's finished runs before run `number`. */
export async function readSessionSummary(
  db: Db,
  organizationId: string,
  { sessionId, number }: { readonly sessionId: string; readonly number: number },
): Promise<SessionSummaryStep | undefined> {
  const rows = await queryRows<{ data: SessionSummaryStep }>(
    db,
    `SELECT step.data FROM starts AS run JOIN run_steps AS step ON step.run_id = run.id
     WHERE run.organization_id = $1 AND run.session_id = $2 AND run.number BETWEEN $3 AND $4
       AND run.finished_at IS NOT NULL AND step.kind = 'session_summary' AND step.data ->> 'text' <> ''
     ORDER BY run.number DESC LIMIT 1`,
    [organizationId, sessionId, number - SUMMARY_SEARCH_RUNS, number - 1],
  )
  return rows[0]?.data
}
