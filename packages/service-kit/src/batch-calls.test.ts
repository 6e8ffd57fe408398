import { describe, expect, test } from '@jest/globals'
import { batchCalls } from './batch-calls.ts'

/** A batch function that records its batches and gives each item back once it is released. */
function recordBatches(isReleased = true) {
  const batches: number[][] = []
  const released = Promise.withResolvers<void>()
  if (isReleased) released.resolve()
  const run = async (items: number[]): Promise<number[]> => {
    batches.push(items)
    await released.promise
    return items
  }
  return { batches, run, release: released.resolve }
}

async function nextTurns(count = 3): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((done) => setImmediate(done))
}

describe('batchCalls', () => {
  test('calls made while a batch is under way form the next batches of at most `maxSize`, each with its own result', async () => {
    const { batches, run, release } = recordBatches(false)
    const call = batchCalls(run, { maxSize: 2 })
    const first = call(0)
    await nextTurns()
    const rest = [1, 2, 3].map(call)
    release()
    expect(await Promise.all([first, ...rest])).toEqual([0, 1, 2, 3])
    expect(batches).toEqual([[0], [1, 2], [3]])
  })

  test('has at most `concurrency` batches under way', async () => {
    const { batches, run, release } = recordBatches(false)
    const call = batchCalls(run, { maxSize: 1, concurrency: 2 })
    const calls = [1, 2, 3].map(call)
    await nextTurns()
    expect(batches).toEqual([[1], [2]])
    release()
    expect(await Promise.all(calls)).toEqual([1, 2, 3])
  })

  test('an error rejects the calls of its batch and no others', async () => {
    const { batches, run } = recordBatches()
    const call = batchCalls(
      async (items: number[]) => {
        if (batches.length === 0) {
          batches.push(items)
          throw new Error('no database')
        }
        return run(items)
      },
      { maxSize: 2 },
    )
    const failed = { status: 'rejected', reason: { message: 'no database' } }
    expect(await Promise.allSettled([0, 1, 2].map(call))).toMatchObject([failed, failed, { value: 2 }])
  })

  test('an error caused by one item rejects only that item', async () => {
    const call = batchCalls(
      async (items: number[]) => {
        if (items.includes(1)) throw new Error('bad item')
        return items
      },
      { maxSize: 10, isItemError: () => true },
    )
    const failed = { status: 'rejected', reason: { message: 'bad item' } }
    expect(await Promise.allSettled([0, 1, 2].map(call))).toMatchObject([{ value: 0 }, failed, { value: 2 }])
  })

  test('a batch has at most `maxBytes`, unless a single item is larger', async () => {
    const { batches, run, release } = recordBatches(false)
    const call = batchCalls(run, { maxSize: 3, maxBytes: 10, sizeOf: (item) => item })
    const first = call(0)
    await nextTurns()
    const rest = [4, 6, 1, 99, 5, 1, 1, 1].map(call)
    release()
    expect(await Promise.all([first, ...rest])).toEqual([0, 4, 6, 1, 99, 5, 1, 1, 1])
    expect(batches).toEqual([[0], [4, 6], [1], [99], [5, 1, 1], [1]])
  })

  test('items that are run alone share few concurrent calls, and a slow one does not hold up the others', async () => {
    const slow = Promise.withResolvers<void>()
    let underWay = 0
    let most = 0
    const call = batchCalls(
      async (items: number[]) => {
        if (items.length > 1) throw new Error('bad item')
        most = Math.max(most, ++underWay)
        if (items[0] === 0) await slow.promise
        await nextTurns(1)
        underWay--
        return items
      },
      { maxSize: 10, isItemError: async () => true },
    )
    const [first, ...others] = [0, 1, 2, 3, 4, 5, 6, 7].map(call)
    expect(await Promise.all(others)).toEqual([1, 2, 3, 4, 5, 6, 7])
    slow.resolve()
    expect(await first).toBe(0)
    expect(most).toBe(4)
  })

  test('an outage while items are run alone rejects the rest at once', async () => {
    let calls = 0
    const call = batchCalls(
      async () => {
        throw new Error(++calls === 1 ? 'bad item' : 'outage')
      },
      { maxSize: 100, isItemError: (error) => (error as Error).message === 'bad item' },
    )
    const results = await Promise.allSettled(Array.from({ length: 50 }, (_, item) => call(item)))
    expect(results.every((result) => result.status === 'rejected')).toBe(true)
    expect(calls).toBeLessThanOrEqual(1 + 4)
  })

  test('rejects items that have waited longer than the queue timeout, and runs the rest', async () => {
    let nowMs = 0
    const { batches, run, release } = recordBatches(false)
    const queueTimeout = { ms: 100, error: () => new Error('too late') }
    const call = batchCalls(run, { maxSize: 10, queueTimeout, now: () => nowMs })
    const first = call(0)
    await nextTurns()
    const late = call(1)
    nowMs = 1
    const rest = call(2)
    nowMs = 101
    release()
    await expect(late).rejects.toThrow('too late')
    expect(await Promise.all([first, rest])).toEqual([0, 2])
    const alone = call(3)
    nowMs = 202
    await expect(alone).rejects.toThrow('too late')
    expect(batches).toEqual([[0], [2]])
  })
})
