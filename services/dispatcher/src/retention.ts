import {
  type AgedBatch,
  allOrganizations,
  deleteOldAuditEvents,
  deleteOldCases,
  deleteOldDeliveries,
  deleteOldJournals,
  deleteOldResendJobs,
  deleteOldRuns,
  deleteOldSessions,
  deleteOldSpending,
  doEach,
  type RetentionBatch,
  type RetentionResult,
  type SqlDatabase,
} from '@workflow-service/database'
import { runBatches } from '@workflow-service/service-kit'
import type { DispatcherContext } from './dispatcher-context.ts'

const BATCH_SIZE = 1_000
/** Most rows are deleted here: the pauses leave most of the database to the other services. */
const PAUSES = { pauseMs: 100, share: 1 / 2 }
/** What models have cost is kept for a year and a month: budgets need the running month only. */
const SPENDING_DAYS = 400

type RetentionContext = Pick<DispatcherContext, 'config' | 'db' | 'deliveryMetrics' | 'logger'>
type RetentionDays = RetentionContext['config']['retentionDays']

/** Deletes the old rows of one kind, batch after batch. */
type DeleteOld = (rows: {
  readonly db: SqlDatabase
  readonly olderThanDays: number
  readonly signal: AbortSignal
  readonly count: (deleted: number) => void
}) => Promise<void>

/** A session that was used since then still has a run: each pass would look at all sessions in between. */
const sessionDays = ({ runs, sessions }: RetentionDays) => (runs === 0 || sessions === 0 ? 0 : Math.max(runs, sessions))

/** What is deleted, by the names in logs and metrics, after how many days. 0: never. */
const DELETIONS = {
  deliveries: { days: ({ deliveries }) => deliveries, deleteOld: ofAll(deleteOldDeliveries) },
  resend_jobs: { days: ({ deliveries }) => deliveries, deleteOld: ofAll(deleteOldResendJobs) },
  journal_steps: { days: ({ journals }) => journals, deleteOld: ofEach(deleteOldJournals) },
  runs: { days: ({ runs }) => runs, deleteOld: ofEach(deleteOldRuns) },
  cases: { days: ({ runs }) => runs, deleteOld: ofAll(deleteOldCases) },
  sessions: { days: sessionDays, deleteOld: ofEach(deleteOldSessions) },
  audit_events: { days: ({ auditEvents }) => auditEvents, deleteOld: ofAll(deleteOldAuditEvents) },
  model_spending: { days: () => SPENDING_DAYS, deleteOld: ofAll(deleteOldSpending) },
} satisfies Readonly<Record<string, { days: (settings: RetentionDays) => number; deleteOld: DeleteOld }>>

type Kind = keyof typeof DELETIONS
const KINDS = Object.keys(DELETIONS) as Kind[]

/**
 * Deletes what is older than the settings (contract README, "Retention"), in batches of at most 1,000 rows, each a
 * transaction of its own. A process that dies, or is stopped, leaves the rest to the next run of any process. Resolves
 * to the number of deleted rows, by kind. An error is thrown when the other kinds and organizations are done.
 */
export async function applyRetention({ config, db, deliveryMetrics, logger }: RetentionContext, signal: AbortSignal) {
  const counts = Object.fromEntries(KINDS.map((kind) => [kind, 0])) as Record<Kind, number>
  const deleteKind = async (kind: Kind): Promise<void> => {
    const olderThanDays = DELETIONS[kind].days(config.retentionDays)
    const count = (deleted: number): void => {
      counts[kind] += deleted
      deliveryMetrics.countRetired(kind, deleted)
    }
    if (olderThanDays > 0) await DELETIONS[kind].deleteOld({ db, olderThanDays, signal, count })
  }
  const failure = await doEach(KINDS, deleteKind, signal)
  if (Object.values(counts).some((rows) => rows > 0)) logger.info(counts, 'retention.applied')
  if (failure) throw failure
  return counts
}

/** Rows of all organizations together: until a batch has fewer than it may have. */
function ofAll(deleteBatch: (db: SqlDatabase, batch: AgedBatch) => Promise<number>): DeleteOld {
  return ({ db, olderThanDays, signal, count }) =>
    runBatches({ ...PAUSES, signal }, async () => {
      const deleted = await deleteBatch(db, { olderThanDays, batchSize: BATCH_SIZE })
      count(deleted)
      return deleted >= BATCH_SIZE
    })
}

/** Rows of one organization after the other: each batch begins where the one before ended. */
function ofEach(deleteBatch: (db: SqlDatabase, batch: RetentionBatch) => Promise<RetentionResult>): DeleteOld {
  return async ({ db, olderThanDays, signal, count }) => {
    const deleteOf = async (organizationId: string): Promise<void> => {
      let after: RetentionResult['next']
      await runBatches({ ...PAUSES, signal }, async () => {
        const result = await deleteBatch(db, { organizationId, olderThanDays, batchSize: BATCH_SIZE, after })
        count(result.deleted)
        after = result.next
        return after !== undefined
      })
    }
    const failure = await doEach(allOrganizations(db), deleteOf, signal)
    if (failure) throw failure
  }
}
