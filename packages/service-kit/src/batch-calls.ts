/** How calls are grouped. */
export interface BatchOptions {
  /** Most items in one batch. */
  maxSize: number
  /** Batches under way at once. Default 1: calls that arrive meanwhile form the next batch. */
  concurrency?: number
  /**
   * Whether an error may be caused by a single item, so that the batch is run again item by item and only the bad item
   * fails. Default: never.
   */
  isItemError?: (error: unknown) => boolean
  /** Rejects an item, without running it, that has waited this long for its batch. Default: items wait without limit. */
  queueTimeout?: { readonly ms: number; readonly error: () => Error }
  /** A monotonic clock in milliseconds; another one in tests. */
  now?: () => number
}

interface QueuedItem<Item, Result> {
  readonly item: Item
  readonly queuedMs: number
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/**
 * Groups calls into batches. A batch is what has queued up while the last one was under way, so an idle system adds no
 * delay. `run` must give one result for each item, in their order.
 */
export function batchCalls<Item, Result>(
  run: (items: Item[]) => Promise<readonly Result[]>,
  options: BatchOptions,
): (item: Item) => Promise<Result> {
  const { maxSize, concurrency = 1, isItemError = () => false, queueTimeout, now = () => performance.now() } = options
  const queue: QueuedItem<Item, Result>[] = []
  let batchesUnderWay = 0
  let isScheduled = false

  // Deferred, so that calls made in the same turn of the event loop form one batch.
  const schedule = (): void => {
    if (isScheduled || batchesUnderWay >= concurrency || queue.length === 0) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      rejectExpired()
      if (queue.length > 0) void runBatch(queue.splice(0, maxSize))
      schedule()
    })
  }

  const rejectExpired = (): void => {
    if (!queueTimeout) return
    const oldestMs = now() - queueTimeout.ms
    const firstFresh = queue.findIndex(({ queuedMs }) => queuedMs >= oldestMs)
    for (const { reject } of queue.splice(0, firstFresh === -1 ? queue.length : firstFresh))
      reject(queueTimeout.error())
  }

  const runBatch = async (batch: readonly QueuedItem<Item, Result>[]): Promise<void> => {
    batchesUnderWay++
    try {
      const results = await run(batch.map(({ item }) => item))
      if (results.length !== batch.length) throw new Error('A batch must give one result for each item')
      for (const [index, result] of results.entries()) batch[index]?.resolve(result)
    } catch (error) {
      if (batch.length > 1 && isItemError(error)) for (const each of batch) await runBatch([each])
      else for (const { reject } of batch) reject(error)
    } finally {
      batchesUnderWay--
      schedule()
    }
  }

  return (item) => {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    queue.push({ item, queuedMs: now(), resolve, reject })
    schedule()
    return promise
  }
}
