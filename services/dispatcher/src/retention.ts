import { setTimeout as sleep } from 'node:timers/promises'
import {
  deleteOldAuditEvents,
  deleteOldCases,
  deleteOldDeliveries,
  deleteOldJournals,
  deleteOldRuns,
  deleteOldSessions,
  deleteOldSpending,
  organizationPages,
  type RetentionBatch,
  type RetentionResult,
} from '@workflow-service/database'
import type { DispatcherContext } from './dispatcher-context.ts'

const BATCH_SIZE = 1_000
/** The shortest pause between two batches. */
const MIN_PAUSE_MS = 100

type RetentionContext = Pick<DispatcherContext, 'config' | 'db' | 'deliveryMetrics' | 'logger'>

/** Rows that were deleted, by kind. */
export interface RetentionCounts {
  deliveries: number
  journalSteps: number
  runs: number
  sessions: number
  cases: number
  auditEvents: number
}

/**
 * Deletes what is older than the settings (contract README, "Retention"), in batches of at most 1,000 rows, each a
 * transaction of its own. It pauses after each batch for at least as long as the batch took, which leaves most of the
 * database to the other services. A process that dies, or is stopped, leaves the rest to the next run of any process.
 */
export async function applyRetention(ctx: RetentionContext, signal: AbortSignal): Promise<RetentionCounts> {
  const { config, db, deliveryMetrics, logger } = ctx
  const { retentionDays: days } = config
  const counts: RetentionCounts = { deliveries: 0, journalSteps: 0, runs: 0, sessions: 0, cases: 0, auditEvents: 0 }
  if (days.deliveries > 0) {
    counts.deliveries = await repeatBatch(signal, async () => {
      const deleted = await deleteOldDeliveries(db, { olderThanDays: days.deliveries, batchSize: BATCH_SIZE })
      deliveryMetrics.countDeleted(deleted)
      return { deleted, isMore: deleted === BATCH_SIZE }
    })
  }
  const deleteOfOrganizations = async (
    rows: string,
    olderThanDays: number,
    deleteBatch: (db: DispatcherContext['db'], batch: RetentionBatch) => Promise<RetentionResult>,
  ): Promise<number> => {
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
  if (days.journals > 0) {
    counts.journalSteps = await deleteOfOrganizations('journal_steps', days.journals, deleteOldJournals)
  }
  if (days.runs > 0) {
    counts.runs = await deleteOfOrganizations('runs', days.runs, deleteOldRuns)
    counts.cases = await repeatBatch(signal, async () => {
      const deleted = await deleteOldCases(db, { olderThanDays: days.runs, batchSize: BATCH_SIZE })
      deliveryMetrics.countRetired('cases', deleted)
      return { deleted, isMore: deleted >= BATCH_SIZE }
    })
  }
  // A session that was used since then still has a run: without this, each run would look at all sessions in between.
  if (days.sessions > 0 && days.runs > 0) {
    counts.sessions = await deleteOfOrganizations('sessions', Math.max(days.sessions, days.runs), deleteOldSessions)
  }
  if (days.auditEvents > 0) {
    counts.auditEvents = await repeatBatch(signal, async () => {
      const deleted = await deleteOldAuditEvents(db, { olderThanDays: days.auditEvents, batchSize: BATCH_SIZE })
      deliveryMetrics.countRetired('audit_events', deleted)
      return { deleted, isMore: deleted === BATCH_SIZE }
    })
  }
  await repeatBatch(signal, async () => {
    const deleted = await deleteOldSpending(db, BATCH_SIZE)
    deliveryMetrics.countRetired('model_spending', deleted)
    return { deleted, isMore: deleted === BATCH_SIZE }
  })
  if (Object.values(counts).some((count) => count > 0)) {
    const { journalSteps: journal_steps, auditEvents: audit_events, ...others } = counts
    logger.info({ ...others, journal_steps, audit_events }, 'retention.applied')
  }
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
