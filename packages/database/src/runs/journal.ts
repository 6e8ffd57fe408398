import type { JournalStep, NewJournalStep } from '@workflow-service/contract'
import {
  column,
  type Db,
  insertMissing,
  listsOf,
  type RowOfStatement,
  runStatement,
  statement,
} from '../connection/index.ts'
import { type Lease, stepsOfRow, toStepRows } from '../deliveries/index.ts'

/** Steps to append to the journal of a run, from `position` on. */
export interface StepsToAppend {
  readonly lease: Lease
  readonly runId: string
  readonly position: number
  readonly steps: readonly SerializedStep[]
}

/**
 * A step with its data as JSON text, which is as large as the payload in it: the caller needs its size, so it is made
 * once.
 */
export interface SerializedStep {
  readonly kind: NewJournalStep['kind']
  readonly data: string
}

export function serializeStep({ kind, data }: NewJournalStep): SerializedStep {
  return { kind, data: JSON.stringify(data) }
}

const APPEND_STEPS = statement('runs/append-steps', { sessionId: column.uuid, epoch: column.float8 })

/**
 * Appends steps of any number of runs in one statement, each only under its own lease (contract README, "The journal").
 * The session's row is locked, so that the next owner of the lease reads either none of the steps or all. Resolves to
 * whether each lease was still the caller's and its steps are written. Calling it again after a lost answer does no
 * harm.
 */
export async function appendSteps(
  db: Db,
  owner: string,
  appends: readonly StepsToAppend[],
): Promise<readonly boolean[]> {
  const rows = appends.flatMap(({ lease, runId, position, steps }) =>
    toStepRows(position, steps).map((step) => ({ ...lease, runId, ...step })),
  )
  const lists = listsOf(rows, 'sessionId', 'epoch', 'runId', 'position', 'kind', 'data', 'earlierSteps')
  const leased = await insertMissing(() => runStatement(db, APPEND_STEPS, [owner, ...lists]))
  const epochs = new Map(leased.rows.map(({ sessionId, epoch }) => [sessionId, epoch]))
  return appends.map(({ lease }) => epochs.get(lease.sessionId) === lease.epoch)
}

export const STEP_COLUMNS = {
  runId: column.uuid,
  position: column.integer,
  kind: column.text<JournalStep['kind']>(),
  data: column.json<JournalStep['data']>(),
  earlierSteps: column.json<NewJournalStep[]>().orNull,
  createdAt: column.timestamptz,
}
const READ_STEPS = statement('runs/read-steps', STEP_COLUMNS)

export async function readSteps(db: Db, runId: string): Promise<readonly JournalStep[]> {
  const { rows } = await runStatement(db, READ_STEPS, [[runId]])
  return groupSteps(rows).get(runId) ?? []
}

/** The journals of runs, by run. A run without steps has no entry. */
export function groupSteps(
  rows: readonly RowOfStatement<typeof READ_STEPS>[],
): ReadonlyMap<string, readonly JournalStep[]> {
  const journals = new Map<string, JournalStep[]>()
  for (const { runId, ...row } of rows) {
    // The kind says which data it is.
    const steps = stepsOfRow(row) as JournalStep[]
    const journal = journals.get(runId)
    if (journal) journal.push(...steps)
    else journals.set(runId, steps)
  }
  return journals
}
