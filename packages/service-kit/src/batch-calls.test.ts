import { describe, expect, test } from '@jest/globals'
import { batchCalls } from './batch-calls.ts'

describe('batchCalls', () => {
  test('groups the calls of one turn, and answers each with its own result', async () => {
    const batches: number[][] = []
    const double = batchCalls(
      async (items: number[]) => {
        batches.push(items)
        return items.map((item) => item * 2)
      },
      { maxSize: 10 },
    )
    expect(await Promise.all([double(1), double(2), double(3)])).toEqual([2, 4, 6])
    expect(batches).toEqual([[1, 2, 3]])
  })

  test('what queues up while a batch is under way goes together in the next, at most `maxSize`', async () => {
    const batches: number[][] = []
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const call = batchCalls(
      async (items: number[]) => {
        batches.push(items)
        await released
        return items
      },
      { maxSize: 2 },
    )
    const first = call(0)
    await new Promise((done) => setImmediate(done))
    const rest = [1, 2, 3].map(call)
    release()
    expect(await Promise.all([first, ...rest])).toEqual([0, 1, 2, 3])
    expect(batches).toEqual([[0], [1, 2], [3]])
  })

  test('has at most `concurrency` batches under way', async () => {
    const releases: (() => void)[] = []
    const call = batchCalls(
      (items: number[]) => new Promise<number[]>((resolve) => releases.push(() => resolve(items))),
      { maxSize: 1, concurrency: 2 },
    )
    const calls = [1, 2, 3].map(call)
    await turns(5)
    expect(releases).toHaveLength(2)
    releases.at(1)?.()
    await turns(5)
    expect(releases).toHaveLength(3)
    for (const release of releases) release()
    expect(await Promise.all(calls)).toEqual([1, 2, 3])
  })

  test('an error fails the calls of its batch and no others', async () => {
    let batches = 0
    const call = batchCalls(
      async (items: number[]) => {
        if (++batches === 1) throw new Error('away')
        return items
      },
      { maxSize: 2 },
    )
    expect(await Promise.allSettled([0, 1, 2].map(call))).toMatchObject([
      { status: 'rejected', reason: { message: 'away' } },
      { status: 'rejected', reason: { message: 'away' } },
      { status: 'fulfilled', value: 2 },
    ])
  })

  test('when one item is at fault, only that one fails', async () => {
    const call = batchCalls(
      async (items: number[]) => {
        if (items.includes(1)) throw new Error('bad item')
        return items
      },
      { maxSize: 10, isItemError: () => true },
    )
    expect(await Promise.allSettled([0, 1, 2].map(call))).toMatchObject([
      { status: 'fulfilled', value: 0 },
      { status: 'rejected', reason: { message: 'bad item' } },
      { status: 'fulfilled', value: 2 },
    ])
  })

  test('rejects what has waited for too long, and runs the rest', async () => {
    let nowMs = 0
    const batches: number[][] = []
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const call = batchCalls(
      async (items: number[]) => {
        batches.push(items)
        if (batches.length === 1) await released
        return items
      },
      { maxSize: 10, patience: { maxWaitMs: 100, error: () => new Error('too late') }, now: () => nowMs },
    )
    const first = call(0)
    await new Promise((done) => setImmediate(done))
    const late = call(1)
    nowMs = 1
    const rest = call(2)
    nowMs = 101
    release()
    await expect(late).rejects.toThrow('too late')
    expect(await Promise.all([first, rest])).toEqual([0, 2])
    expect(batches).toEqual([[0], [2]])
  })
})

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((done) => setImmediate(done))
}
