import { type DispatcherOverrides, startDispatcher } from '@workflow-service/dispatcher'
import { type RunnerOverrides, startRunner } from '@workflow-service/runner'
import type { RunningService } from '@workflow-service/service-kit'
import type { CompactConfig } from './config.ts'

/** Replacements for tests. */
export interface CompactOverrides {
  readonly dispatcher?: DispatcherOverrides
  readonly runner?: RunnerOverrides
}

/**
 * Starts the dispatcher, and a runner that calls it. Rejects, with nothing left running, when one of them cannot start.
 * A stop ends both at once: each waits for its own work, and the dispatcher takes no new payload of the runner.
 */
export async function startCompact(config: CompactConfig, overrides: CompactOverrides = {}): Promise<RunningService> {
  const dispatcher = await startDispatcher(config.dispatcher, overrides.dispatcher)
  try {
    const runner = await startRunner(config.runner, { ...overrides.runner, dispatcher: dispatcher.local })
    return {
      ...dispatcher,
      metricsPort: runner.metricsPort,
      stop: async () => {
        await Promise.all([runner.stop(), dispatcher.stop()])
      },
    }
  } catch (error) {
    await dispatcher.stop()
    throw error
  }
}
