import type { Logger } from './logger.ts'
import { repeat } from './repeat.ts'
import type { ServiceWork } from './start-service.ts'

/**
 * What a service does on a timer. Each service lists its tasks in `maintenance.ts`; several processes may run them at
 * once.
 */
export interface MaintenanceTask<Context> {
  /** Names the task in the event `task.failed`. */
  readonly name: string
  /** Milliseconds from the end of one run to the start of the next. The first run is at once, unless `isDelayed`. */
  readonly intervalMs: number
  /** Whether the first run waits for the interval too. */
  readonly isDelayed?: boolean
  /** Milliseconds until the next run after one that rejected. Default: `intervalMs`. */
  readonly retryMs?: number
  /** The statements that it executes, by the names of their functions in packages/database. */
  readonly statements: readonly string[]
  readonly run: (ctx: Context, signal: AbortSignal) => Promise<unknown>
}

export function startMaintenance<Context extends { readonly logger: Logger }>(
  ctx: Context,
  tasks: readonly MaintenanceTask<Context>[],
): ServiceWork {
  const running = tasks.map(({ name, intervalMs, isDelayed, retryMs, run }) => {
    const firstDelayMs = isDelayed ? intervalMs : 0
    return repeat({ name, intervalMs, firstDelayMs, retryMs, logger: ctx.logger, run: (signal) => run(ctx, signal) })
  })
  return { stop: async () => void (await Promise.all(running.map((task) => task.stop()))) }
}
