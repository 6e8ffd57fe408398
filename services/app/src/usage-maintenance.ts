import { rollUpUsage } from '@workflow-service/database'
import { type RepeatedTask, repeat } from '@workflow-service/service-kit'
import type { AppContext } from './app-context.ts'

const INTERVAL_MS = 60_000

/** Starts rolling up the usage of each closed hour. Every process of the application tries; one at a time does it. */
export function startUsageRollUp({ db, logger }: Pick<AppContext, 'db' | 'logger'>): Pick<RepeatedTask, 'stop'> {
  return repeat({
    name: 'roll up the usage',
    intervalMs: INTERVAL_MS,
    logger,
    run: async (signal) => {
      const hours = await rollUpUsage(db, signal)
      if (hours.length > 0) logger.info({ hours: hours.length, last_hour: hours.at(-1) }, 'usage rolled up')
    },
  })
}
