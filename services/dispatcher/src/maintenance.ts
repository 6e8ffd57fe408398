import { markAbandonedDeliveries } from '@workflow-service/database'
import { repeat } from '@workflow-service/service-kit'
import type { AppContext } from './app-context.ts'
import { applyRetention } from './retention.ts'

const MARK_ABANDONED_EVERY_MS = 15_000
const DELETE_OLD_EVERY_MS = 3_600_000

/** The dispatcher's background tasks. Several dispatchers may run them at the same time. */
export interface Maintenance {
  stop(): Promise<void>
}

/** Starts marking abandoned deliveries as `unknown` and deleting what is older than the retention settings. */
export function startMaintenance(ctx: AppContext): Maintenance {
  const { logger } = ctx
  const tasks = [
    repeat({
      name: 'mark abandoned deliveries as unknown',
      intervalMs: MARK_ABANDONED_EVERY_MS,
      logger,
      run: () => markAbandoned(ctx),
    }),
    repeat({
      name: 'delete old rows',
      intervalMs: DELETE_OLD_EVERY_MS,
      logger,
      run: (signal) => applyRetention(ctx, signal),
    }),
  ]
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
  ctx.logger.warn({ count }, 'delivery.abandoned')
}
