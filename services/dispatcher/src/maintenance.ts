import { setTimeout as sleep } from 'node:timers/promises'
import { deleteOldDeliveries, markAbandonedDeliveries } from '@workflow-service/database'
import { repeat } from '@workflow-service/service-kit'
import type { AppContext } from './app-context.ts'

const MARK_ABANDONED_EVERY_MS = 15_000
const DELETE_OLD_EVERY_MS = 3_600_000
const DELETE_BATCH_SIZE = 1_000
/** Pause between two batches, so that the deletion of millions of entries leaves the database to the deliveries. */
const DELETE_PAUSE_MS = 100

/** The dispatcher's background tasks. Several dispatchers may run them at the same time. */
export interface Maintenance {
  stop(): Promise<void>
}

/** Starts marking abandoned deliveries as `unknown` and deleting old entries of the delivery log. */
export function startMaintenance(ctx: AppContext): Maintenance {
  const { logger } = ctx
  const tasks = [
    repeat({
      name: 'mark abandoned deliveries as unknown',
      intervalMs: MARK_ABANDONED_EVERY_MS,
      logger,
      run: () => markAbandoned(ctx),
    }),
  ]
  if (ctx.config.logRetentionDays > 0) {
    tasks.push(
      repeat({
        name: 'delete old log entries',
        intervalMs: DELETE_OLD_EVERY_MS,
        logger,
        run: (signal) => deleteOldLogEntries(ctx, signal),
      }),
    )
  }
  return {
    stop: async () => {
      await Promise.all(tasks.map((task) => task.stop()))
    },
  }
}

/**
 * Marks deliveries that no caller requests again. It waits half as long again as their deadline, so that an outcome that was
 * delayed by a short database outage is usually recorded first. A later outcome still replaces `unknown`.
 */
async function markAbandoned(
  ctx: Pick<AppContext, 'db' | 'deliveryDeadlineMs' | 'deliveryMetrics' | 'logger'>,
): Promise<void> {
  const count = await markAbandonedDeliveries(ctx.db, { olderThanMs: ctx.deliveryDeadlineMs * 1.5 })
  if (count === 0) return
  ctx.deliveryMetrics.countAbandoned(count)
  ctx.logger.warn({ count }, 'abandoned deliveries became unknown')
}

/** Deletes entries older than the retention in batches. Resolves to their number. */
export async function deleteOldLogEntries(
  ctx: Pick<AppContext, 'config' | 'db' | 'deliveryMetrics' | 'logger'>,
  signal: AbortSignal,
): Promise<number> {
  const options = { olderThanDays: ctx.config.logRetentionDays, batchSize: DELETE_BATCH_SIZE }
  let total = 0
  let deleted: number
  do {
    deleted = await deleteOldDeliveries(ctx.db, options)
    total += deleted
    ctx.deliveryMetrics.countDeleted(deleted)
    await sleep(DELETE_PAUSE_MS, undefined, { signal }).catch(() => {})
  } while (deleted === DELETE_BATCH_SIZE && !signal.aborted)
  if (total > 0) ctx.logger.info({ count: total }, 'old log entries deleted')
  return total
}
