import { describeError, type Logger } from './logger.ts'

/** A task that runs again and again. */
export interface RepeatOptions {
  /** Names the task in the event `task.failed`: "delete old idempotency keys". */
  name: string
  /** Milliseconds between the end of one run and the start of the next. */
  intervalMs: number
  /** Milliseconds until the first run. Default 0: at once. */
  firstDelayMs?: number
  /** Milliseconds until the next run after one that rejected. Default: `intervalMs`. */
  retryMs?: number
  logger: Pick<Logger, 'warn'>
  /** Called instead of logging a warning when a run rejects. */
  onError?: (error: unknown) => void
  /** The signal aborts when the task is stopped. */
  run: (signal: AbortSignal) => Promise<unknown>
}

export type RepeatedTask = ReturnType<typeof repeat>

/**
 * Runs a task now and then `intervalMs` after each run has ended, so that runs never overlap. A run that rejects is
 * logged and does not end the repetition. Its timer does not keep the process alive.
 */
export function repeat(options: RepeatOptions) {
  const { name, intervalMs, firstDelayMs = 0, retryMs = intervalMs, logger, run } = options
  const { onError = (error) => logger.warn({ task: name, error: describeError(error) }, 'task.failed') } = options
  const stopping = new AbortController()
  let woken = Promise.withResolvers<void>()

  const wait = async (delayMs: number): Promise<void> => {
    const timer = setTimeout(woken.resolve, delayMs)
    timer.unref()
    await woken.promise
    clearTimeout(timer)
    woken = Promise.withResolvers()
  }
  const runOnce = async (): Promise<number> => {
    try {
      await run(stopping.signal)
      return intervalMs
    } catch (error) {
      onError(error)
      return retryMs
    }
  }
  const loop = async (): Promise<void> => {
    if (firstDelayMs > 0) await wait(firstDelayMs)
    while (!stopping.signal.aborted) await wait(await runOnce())
  }
  const ended = loop()

  return {
    /** Starts the next run now; while one is under way, right after it. */
    trigger: () => woken.resolve(),
    /** Aborts the signal, starts no further run, and resolves when the run under way has ended. */
    stop: async () => {
      stopping.abort()
      woken.resolve()
      await ended
    },
  }
}
