import { markAbandonedDeliveries, wakePausedSessions } from '@workflow-service/database'
import { type MaintenanceTask, runBatches } from '@workflow-service/service-kit'
import type { DispatcherContext } from './dispatcher-context.ts'
import { applyRetention } from './retention.ts'

/** What a dispatcher does on a timer. */
export const MAINTENANCE: readonly MaintenanceTask<DispatcherContext>[] = [
  {
    name: 'mark abandoned deliveries as unknown',
    intervalMs: 15_000,
    statements: ['markAbandonedDeliveries'],
    run: (ctx) => markAbandoned(ctx),
  },
  {
    name: 'wake runs of resumed sources',
    intervalMs: 15_000,
    statements: ['wakePausedSessions'],
    // Without a pause: runs wait for it.
    run: ({ db }, signal) => runBatches({ signal }, () => wakePausedSessions(db)),
  },
  {
    name: 'delete old rows',
    intervalMs: 3_600_000,
    statements: [
      'deleteOldDeliveries',
      'deleteOldResendJobs',
      'deleteOldJournals',
      'deleteOldRuns',
      'deleteOldSessions',
      'deleteOldCases',
      'deleteOldAuditEvents',
      'deleteOldSpending',
    ],
    run: (ctx, signal) => applyRetention(ctx, signal),
  },
]

/**
 * Marks deliveries that no caller requests again. It waits half as long again as their deadline, so that an outcome
 * that was delayed by a short database outage is usually recorded first. A later outcome still replaces `unknown`.
 */
async function markAbandoned(
  ctx: Pick<DispatcherContext, 'db' | 'deliveryDeadlineMs' | 'deliveryMetrics' | 'logger'>,
): Promise<void> {
  const count = await markAbandonedDeliveries(ctx.db, { olderThanMs: ctx.deliveryDeadlineMs * 1.5 })
  if (count === 0) return
  ctx.deliveryMetrics.countAbandoned(count)
  ctx.logger.warn({ count }, 'delivery.abandoned')
}
