import { setTimeout as sleep } from 'node:timers/promises'
import {
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
import type { DispatcherContext } from './dispatcher-context.ts'

const BATCH_SIZE = 1_000
/** The shortest pause between two batches. */
const MIN_PAUSE_MS = 100
/** What models have cost is kept for a year and a month: budgets need the running month only. */
const SPENDING_DAYS = 400

type RetentionContext = Pick<DispatcherContext, 'config' | 'db' | 'deliveryMetrics' | 'logger'>

/**
 * Deletes what is older than the settings (contract README, "Retention"), in batches of at most 1,000 rows, each a
 * transaction of its own. It pauses after each batch for at least as long as the batch took, which leaves most of the
 * database to the other services. A process that dies, or is stopped, leaves the rest to the next run of any process.
 * Resolves to the number of deleted rows, by kind. An error is thrown when the other kinds and organizations are done.
 */
export async function applyRetention(ctx: RetentionContext, signal: AbortSignal) {
  const { db, deliveryMetrics, logger } = ctx
  const { retentionDays: days } = ctx.config
  const counts = {
    deliveries: 0,
    resend_jobs: 0,
    journal_steps: 0,
    runs: 0,
    cases: 0,
    sessions: 0,
    audit_events: 0,
    model_spending: 0,
  }
  type Kind = keyof typeof counts
  const count = (kind: Kind, deleted: number): void => {
    counts[kind] += deleted
    deliveryMetrics.countRetired(kind, deleted)
  }
  const deleteOld = async (
    kind: Kind,
    olderThanDays: number,
    deleteBatch: (db: SqlDatabase, batch: { olderThanDays: number; batchSize: number }) => Promise<number>,
  ): Promise<void> => {
    if (olderThanDays === 0) return
    await repeatBatch(signal, async () => {
      const deleted = await deleteBatch(db, { olderThanDays, batchSize: BATCH_SIZE })
      count(kind, deleted)
      return deleted >= BATCH_SIZE
    })
  }
  const deleteOfOrganization = async (
    kind: Kind,
    { olderThanDays, organizationId }: { olderThanDays: number; organizationId: string },
    deleteBatch: (db: SqlDatabase, batch: RetentionBatch) => Promise<RetentionResult>,
  ): Promise<void> => {
    let after: RetentionResult['next']
    await repeatBatch(signal, async () => {
      const result = await deleteBatch(db, { organizationId, olderThanDays, batchSize: BATCH_SIZE, after })
      count(kind, result.deleted)
      after = result.next
      return after !== undefined
    })
  }
  const deleteOfOrganizations = async (
    kind: Kind,
    olderThanDays: number,
    deleteBatch: (db: SqlDatabase, batch: RetentionBatch) => Promise<RetentionResult>,
  ): Promise<void> => {
    if (olderThanDays === 0) return
    const deleteOf = (organizationId: string) =>
      deleteOfOrganization(kind, { olderThanDays, organizationId }, deleteBatch)
    const failure = await doEach(allOrganizations(db), deleteOf, signal)
    if (failure) throw failure
  }
  // A session that was used since then still has a run: without this, each run would look at all sessions in between.
  const sessionDays = days.runs === 0 || days.sessions === 0 ? 0 : Math.max(days.sessions, days.runs)
  const deletions: Readonly<Record<Kind, () => Promise<void>>> = {
    deliveries: () => deleteOld('deliveries', days.deliveries, deleteOldDeliveries),
    resend_jobs: () => deleteOld('resend_jobs', days.deliveries, deleteOldResendJobs),
    journal_steps: () => deleteOfOrganizations('journal_steps', days.journals, deleteOldJournals),
    runs: () => deleteOfOrganizations('runs', days.runs, deleteOldRuns),
    cases: () => deleteOld('cases', days.runs, deleteOldCases),
    sessions: () => deleteOfOrganizations('sessions', sessionDays, deleteOldSessions),
    audit_events: () => deleteOld('audit_events', days.auditEvents, deleteOldAuditEvents),
    model_spending: () => deleteOld('model_spending', SPENDING_DAYS, deleteOldSpending),
  }
  const failure = await doEach(Object.keys(deletions) as Kind[], (kind) => deletions[kind](), signal)
  if (Object.values(counts).some((rows) => rows > 0)) logger.info(counts, 'retention.applied')
  if (failure) throw failure
  return counts
}

/** Runs batches until none is left, or the signal aborts. */
async function repeatBatch(signal: AbortSignal, runBatch: () => Promise<boolean>): Promise<void> {
  while (!signal.aborted) {
    const startedAt = performance.now()
    if (!(await runBatch())) break
    const tookMs = performance.now() - startedAt
    await sleep(Math.max(MIN_PAUSE_MS, tookMs), undefined, { signal }).catch(() => {})
  }
}
