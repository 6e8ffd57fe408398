import type { Logger } from './logger.ts'
import { describeError } from './logger.ts'
import { SettingsError } from './settings.ts'

/** A service that runs until it is told to stop. */
export interface RunningService {
  readonly logger: Logger
  /** Ends what is under way and lets go of everything; the event loop empties by itself afterwards. */
  stop(): Promise<void>
}

/** How long a stop may take before the process is ended: the 30 s of a payload request and a little. */
const STOP_DEADLINE_MS = 35_000

/**
 * The life of a process: start, run until SIGTERM or SIGINT, stop. A setting that is wrong, or a start that fails, ends
 * with exit status 1 and says why. A second signal ends the process at once.
 */
export async function runService(start: () => Promise<RunningService>): Promise<void> {
  collectGarbage()
  let service: RunningService
  try {
    service = await start()
  } catch (error) {
    process.stderr.write(`${error instanceof SettingsError ? error.message : startFailure(error)}\n`)
    process.exit(1)
  }
  const { logger } = service
  let isStopping = false
  const stop = (signal: string): void => {
    if (isStopping) process.exit(1)
    isStopping = true
    logger.info({ signal }, 'stopping')
    setTimeout(() => {
      logger.error('stopping took too long')
      process.exit(1)
    }, STOP_DEADLINE_MS).unref()
    service.stop().then(
      () => logger.info('stopped'),
      (error: unknown) => {
        logger.error({ error: describeError(error) }, 'stopping failed')
        process.exitCode = 1
      },
    )
  }
  process.on('SIGTERM', () => stop('SIGTERM'))
  process.on('SIGINT', () => stop('SIGINT'))
}

/**
 * Lets go of what loading the code left behind, which is half of the heap by then: an idle service does not allocate
 * enough to make V8 do so. Only where Node was started with `--expose-gc`, as the services' start scripts do.
 */
function collectGarbage(): void {
  globalThis.gc?.({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

function startFailure(error: unknown): string {
  return error instanceof Error ? `Cannot start: ${error.message}` : `Cannot start: ${String(error)}`
}
