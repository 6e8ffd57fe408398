import type { Logger } from './logger.ts'
import { repeat, type RepeatOptions } from './repeat.ts'
import type { ServiceWork } from './start-service.ts'

/**
 * What a service does on a timer. Each service lists its tasks in `maintenance.ts`; several processes may run them at
 * once.
 */
export interface MaintenanceTask<Context> extends Readonly<Pick<RepeatOptions, 'name' | 'intervalMs' | 'retryMs'>> {
  /** Whether the first run waits for the interval too, instead of being at once. */
  readonly isDelayed?: boolean
  /** The statements that it executes, by the names of their functions in packages/database. */
  readonly statements: readonly string[]
  readonly run: (ctx: Context, signal: AbortSignal) => Promise<unknown>
}

export function startMaintenance<Context extends { readonly logger: Logger }>(
  ctx: Context,
  tasks: readonly MaintenanceTask<Context>[],
): ServiceWork {
  const running = tasks.map(({ isDelayed, run, ...task }) => {
    const firstDelayMs = isDelayed ? task.intervalMs : 0
    return repeat({ ...task, firstDelayMs, logger: ctx.logger, run: (signal) => run(ctx, signal) })
  })
  return { stop: async () => void (await Promise.all(running.map((task) => task.stop()))) }
}
