import { setTimeout as sleep } from 'node:timers/promises'
import {
  deleteOldAuditEvents,
  deleteOldCases,
  deleteOldDeliveries,
  deleteOldJournals,
  deleteOldResendJobs,
  deleteOldRuns,
  deleteOldSessions,
  deleteOldSpending,
  organizationPages,
  type RetentionBatch,
  type RetentionResult,
  type SqlDatabase,
} from '@workflow-service/database'
import type { DispatcherContext } from './dispatcher-context.ts'

const BATCH_SIZE = 1_000
/** The shortest pause between two batches. */
const MIN_PAUSE_MS = 100

type RetentionContext = Pick<DispatcherContext, 'config' | 'db' | 'deliveryMetrics' | 'logger'>

/**
 * Deletes what is older than the settings (contract README, "Retention"), in batches of at most 1,000 rows, each a
 * transaction of its own. It pauses after each batch for at least as long as the batch took, which leaves most of the
 * database to the other services. A process that dies, or is stopped, leaves the rest to the next run of any process.
 * Resolves to the number of deleted rows, by kind.
 */
export async function applyRetention(ctx: RetentionContext, signal: AbortSignal) {
  const { db, deliveryMetrics, logger } = ctx
  const { retentionDays: days } = ctx.config
  const deleteOld = async (
    rows: string,
    olderThanDays: number,
    deleteBatch: (db: SqlDatabase, batch: { olderThanDays: number; batchSize: number }) => Promise<number>,
  ): Promise<number> => {
    if (olderThanDays === 0) return 0
    return await repeatBatch(signal, async () => {
      const deleted = await deleteBatch(db, { olderThanDays, batchSize: BATCH_SIZE })
      deliveryMetrics.countRetired(rows, deleted)
      return { deleted, isMore: deleted >= BATCH_SIZE }
    })
  }
  const deleteOfOrganizations = async (
    rows: string,
    olderThanDays: number,
    deleteBatch: (db: SqlDatabase, batch: RetentionBatch) => Promise<RetentionResult>,
  ): Promise<number> => {
    if (olderThanDays === 0) return 0
    let total = 0
    for await (const organizationIds of organizationPages(db)) {
      for (const organizationId of organizationIds) {
        let after: RetentionResult['next']
        total += await repeatBatch(signal, async () => {
          const result = await deleteBatch(db, { organizationId, olderThanDays, batchSize: BATCH_SIZE, after })
          deliveryMetrics.countRetired(rows, result.deleted)
          after = result.next
          return { deleted: result.deleted, isMore: after !== undefined }
        })
      }
      if (signal.aborted) break
    }
    return total
  }
  const counts = {
    deliveries: await deleteOld('deliveries', days.deliveries, deleteOldDeliveries),
    resend_jobs: await deleteOld('resend_jobs', days.deliveries, deleteOldResendJobs),
    journal_steps: await deleteOfOrganizations('journal_steps', days.journals, deleteOldJournals),
    runs: await deleteOfOrganizations('runs', days.runs, deleteOldRuns),
    cases: await deleteOld('cases', days.runs, deleteOldCases),
    // A session that was used since then still has a run: without this, each run would look at all sessions in between.
    sessions: await deleteOfOrganizations(
      'sessions',
      days.runs === 0 || days.sessions === 0 ? 0 : Math.max(days.sessions, days.runs),
      deleteOldSessions,
    ),
    audit_events: await deleteOld('audit_events', days.auditEvents, deleteOldAuditEvents),
  }
  await repeatBatch(signal, async () => {
    const deleted = await deleteOldSpending(db, BATCH_SIZE)
    deliveryMetrics.countRetired('model_spending', deleted)
    return { deleted, isMore: deleted === BATCH_SIZE }
  })
  if (Object.values(counts).some((count) => count > 0)) logger.info(counts, 'retention.applied')
  return counts
}

/** Runs batches until none is left, or the signal aborts. Resolves to the number of deleted rows. */
async function repeatBatch(
  signal: AbortSignal,
  runBatch: () => Promise<{ deleted: number; isMore: boolean }>,
): Promise<number> {
  let total = 0
  while (!signal.aborted) {
    const startedAt = performance.now()
    const { deleted, isMore } = await runBatch()
    total += deleted
    if (!isMore) break
    const tookMs = performance.now() - startedAt
    await sleep(Math.max(MIN_PAUSE_MS, tookMs), undefined, { signal }).catch(() => {})
  }
  return total
}
