/** How calls are grouped. */
export interface BatchOptions {
  /** Items of one batch at most. */
  maxSize: number
  /** Batches under way at once. Default 1: what queues up meanwhile goes together in the next. */
  concurrency?: number
  /**
   * Whether an error is the fault of one item rather than of all, so that each item of the batch is tried alone: then a
   * bad one fails by itself. Default: never.
   */
  isItemError?: (error: unknown) => boolean
  /** How long an item may wait for its batch. After that it is not run, and rejected with the error. Default: for ever. */
  patience?: { readonly maxWaitMs: number; readonly error: () => Error }
  /** A clock that never goes back, in milliseconds; another one in tests. */
  now?: () => number
}

interface Waiting<Item, Result> {
  readonly item: Item
  readonly since: number
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/**
 * Groups calls into batches: a batch is what has queued up while the last one was under way, so nothing waits when idle.
 * `run` gives one result for each item, in their order.
 */
export function batchCalls<Item, Result>(
  run: (items: Item[]) => Promise<readonly Result[]>,
  options: BatchOptions,
): (item: Item) => Promise<Result> {
  const { maxSize, concurrency = 1, isItemError = () => false, patience, now = () => performance.now() } = options
  const waiting: Waiting<Item, Result>[] = []
  let underWay = 0
  let isScheduled = false

  // Not at once: calls of the same turn of the event loop go together.
  const schedule = (): void => {
    if (isScheduled || underWay >= concurrency || waiting.length === 0) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      rejectExpired()
      if (waiting.length > 0) void flush(waiting.splice(0, maxSize))
      schedule()
    })
  }

  // Those that have waited longest stand first.
  const rejectExpired = (): void => {
    if (!patience) return
    const oldest = now() - patience.maxWaitMs
    const expired = waiting.findIndex(({ since }) => since >= oldest)
    for (const { reject } of waiting.splice(0, expired === -1 ? waiting.length : expired)) reject(patience.error())
  }

  const flush = async (batch: readonly Waiting<Item, Result>[]): Promise<void> => {
    underWay++
    try {
      const results = await run(batch.map(({ item }) => item))
      if (results.length !== batch.length) throw new Error('A batch must give one result for each item')
      for (const [index, result] of results.entries()) batch[index]?.resolve(result)
    } catch (error) {
      if (batch.length > 1 && isItemError(error)) for (const each of batch) await flush([each])
      else for (const { reject } of batch) reject(error)
    } finally {
      underWay--
      schedule()
    }
  }

  return (item) => {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    waiting.push({ item, since: now(), resolve, reject })
    schedule()
    return promise
  }
}
