/** How calls are grouped. */
export interface BatchOptions<Item> {
  maxSize: number
  /** Most bytes in one batch, by `sizeOf` of its items; a larger item is run in a separate batch. Default: no limit. */
  maxBytes?: number
  /** The size of an item in bytes. Default: 0. */
  sizeOf?: (item: Item) => number
  /** Batches under way at once. Default 1: calls that arrive meanwhile form the next batch. */
  concurrency?: number
  /**
   * Whether an error may be caused by a single item, so that the batch is run again item by item and only the bad item
   * fails. Default: never.
   */
  isItemError?: (error: unknown) => boolean | Promise<boolean>
  /**
   * Rejects an item, without running it, that has waited this long for its batch. Default: items wait without limit.
   * `since`: by the clock, since when an item waits, if not from its call on.
   */
  queueTimeout?: {
    readonly ms: number
    readonly error: () => Error
    readonly since?: (item: Item) => number
  }
  /** A monotonic clock in milliseconds; another one in tests. */
  now?: () => number
}

/** Items of a failed batch that are run at once, each alone: few, since each may last until its time-out. */
const ALONE_CONCURRENCY = 4

interface QueuedItem<Item, Result> {
  readonly item: Item
  readonly bytes: number
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
  options: BatchOptions<Item>,
): (item: Item) => Promise<Result> {
  const { maxSize, maxBytes = Infinity, sizeOf = () => 0, concurrency = 1, isItemError = () => false } = options
  const { queueTimeout, now = () => performance.now() } = options
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
      if (queue.length > 0) void runBatch(queue.splice(0, nextBatchSize()))
      schedule()
    })
  }

  const nextBatchSize = (): number => {
    let bytes = 0
    const size = queue.findIndex((queued, index) => index === maxSize || (bytes += queued.bytes) > maxBytes)
    return size === -1 ? queue.length : Math.max(1, size)
  }

  const rejectExpired = (): void => {
    if (!queueTimeout) return
    const oldestMs = now() - queueTimeout.ms
    // One that has waited elsewhere before may be behind fresher ones.
    for (const queued of queue.splice(0)) {
      if (queued.queuedMs < oldestMs) queued.reject(queueTimeout.error())
      else queue.push(queued)
    }
  }

  const runBatch = async (batch: readonly QueuedItem<Item, Result>[]): Promise<void> => {
    batchesUnderWay++
    try {
      await runItems(batch)
    } catch (error) {
      if (batch.length > 1 && (await isItemError(error))) await runAlone([...batch])
      else for (const { reject } of batch) reject(error)
    } finally {
      batchesUnderWay--
      schedule()
    }
  }

  const runItems = async (batch: readonly QueuedItem<Item, Result>[]): Promise<void> => {
    const results = await run(batch.map(({ item }) => item))
    if (results.length !== batch.length) throw new Error('A batch must give one result for each item')
    for (const [index, result] of results.entries()) batch[index]?.resolve(result)
  }

  /** Runs each item alone. An error that no item causes, such as an outage, ends this and rejects the rest too. */
  const runAlone = async (rest: QueuedItem<Item, Result>[]): Promise<void> => {
    const runNext = async (): Promise<void> => {
      for (let queued = rest.shift(); queued; queued = rest.shift()) {
        try {
          await runItems([queued])
        } catch (error) {
          queued.reject(error)
          if (rest.length > 0 && !(await isItemError(error))) for (const { reject } of rest.splice(0)) reject(error)
        }
      }
    }
    await Promise.all(Array.from({ length: ALONE_CONCURRENCY }, runNext))
  }

  return (item) => {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const queuedMs = queueTimeout?.since?.(item) ?? now()
    queue.push({ item, bytes: sizeOf(item), queuedMs, resolve, reject })
    schedule()
    return promise
  }
}
