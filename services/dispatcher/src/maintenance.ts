import { setTimeout as pause } from 'node:timers/promises'
import { deleteOldDeliveries, markAbandonedDeliveries, isDatabaseUnavailable } from '@workflow-service/database'
import { describeError } from '@workflow-service/service-kit'
import type { AppContext } from './app-context.ts'

/** Longer than any sending and any wait for its outcome: who died before this left nothing under way. */
const GIVE_UP_AFTER_MS = 120_000
const GIVE_UP_EVERY_MS = 15_000
const RETENTION_EVERY_MS = 3_600_000
const BATCH_SIZE = 1_000
/** Between two batches, so that a deletion of millions leaves the database to the deliveries. */
const BATCH_PAUSE_MS = 100

/** What goes on in the background; safe to run in several dispatchers at once. */
export interface Maintenance {
  stop(): Promise<void>
}

/** Gives up what dead dispatchers left in flight, and deletes what the retention no longer keeps. */
export function startMaintenance(ctx: AppContext): Maintenance {
  const stopping = new AbortController()
  const repeat = async (everyMs: number, work: () => Promise<unknown>): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        await work()
      } catch (error) {
        const level = isDatabaseUnavailable(error) ? 'warn' : 'error'
        ctx.logger[level]({ error: describeError(error) }, 'maintenance failed; it is tried again')
      }
      await pause(everyMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }
  const all = [
    repeat(GIVE_UP_EVERY_MS, () => giveUpLeftovers(ctx)),
    ...(ctx.config.logRetentionDays > 0 ? [repeat(RETENTION_EVERY_MS, () => trimLog(ctx, stopping.signal))] : []),
  ]
  return {
    stop: async () => {
      stopping.abort()
      await Promise.all(all)
    },
  }
}

async function giveUpLeftovers(ctx: AppContext): Promise<void> {
  const count = await markAbandonedDeliveries(ctx.db, { olderThanMs: GIVE_UP_AFTER_MS })
  if (count === 0) return
  ctx.deliveryMetrics.countGivenUp(count)
  ctx.logger.warn({ count }, 'deliveries of a dead dispatcher became unknown')
}

/** Deletes what is older than the retention, batch by batch, and resolves with how many entries that were. */
export async function trimLog(
  ctx: Pick<AppContext, 'config' | 'db' | 'deliveryMetrics' | 'logger'>,
  signal: AbortSignal,
): Promise<number> {
  let total = 0
  for (let count = BATCH_SIZE; count === BATCH_SIZE && !signal.aborted;) {
    count = await deleteOldDeliveries(ctx.db, { olderThanDays: ctx.config.logRetentionDays, batchSize: BATCH_SIZE })
    total += count
    ctx.deliveryMetrics.countDeleted(count)
    await pause(BATCH_PAUSE_MS, undefined, { signal }).catch(() => {})
  }
  if (total > 0) ctx.logger.info({ count: total }, 'old log entries deleted')
  return total
}
