import { describe, expect, test } from '@jest/globals'
import { createInFlightLimiter, type InFlightLimiter, type ReleaseSlot } from './in-flight-limiter.ts'

const LONG_MS = 60_000

/** Acquires a slot that must become free in time. */
async function acquireSlot(limiter: InFlightLimiter, key: string): Promise<ReleaseSlot> {
  const slot = await limiter.acquire(key)
  if (typeof slot === 'string') throw new Error(slot)
  return slot
}

describe('the in-flight limiter', () => {
  test('limits the slots in total and for each key', async () => {
    const limiter = createInFlightLimiter({ total: 3, perKey: 2, waitMs: 0 })
    await acquireSlot(limiter, 'a')
    await acquireSlot(limiter, 'a')
    expect(await limiter.acquire('a')).toBe('key_limit')
    await acquireSlot(limiter, 'b')
    expect(await limiter.acquire('b')).toBe('total_limit')
    expect(limiter).toMatchObject({ inFlight: 3, waiting: 0 })
  })

  test('frees a slot once, even if it is released twice', async () => {
    const limiter = createInFlightLimiter({ total: 1, perKey: 1, waitMs: 0 })
    const release = await acquireSlot(limiter, 'a')
    release()
    release()
    expect(limiter.inFlight).toBe(0)
    await acquireSlot(limiter, 'a')
    expect(await limiter.acquire('b')).toBe('total_limit')
  })

  test('serves waiting callers in the order of their arrival', async () => {
    const limiter = createInFlightLimiter({ total: 1, perKey: 1, waitMs: LONG_MS })
    const served: string[] = []
    let release = await acquireSlot(limiter, 'a')
    const waiters = ['first', 'second', 'third'].map(async (key) => {
      const slot = await acquireSlot(limiter, key)
      served.push(key)
      release = slot
    })
    for (const waiter of waiters) {
      release()
      await waiter
    }
    expect(served).toEqual(['first', 'second', 'third'])
  })

  test('does not delay other keys when a key is at its limit', async () => {
    const limiter = createInFlightLimiter({ total: 10, perKey: 1, waitMs: LONG_MS })
    const release = await acquireSlot(limiter, 'slow')
    const waiter = limiter.acquire('slow')
    await acquireSlot(limiter, 'fast')
    expect(limiter.waiting).toBe(1)
    release()
    expect(typeof (await waiter)).toBe('function')
  })

  test('gives a free slot to the first waiting caller whose key is below its limit', async () => {
    const limiter = createInFlightLimiter({ total: 2, perKey: 1, waitMs: LONG_MS })
    const releaseSlow = await acquireSlot(limiter, 'slow')
    const release = await acquireSlot(limiter, 'other')
    const slow = limiter.acquire('slow')
    const fast = limiter.acquire('fast')
    release()
    expect(typeof (await fast)).toBe('function')
    expect(limiter).toMatchObject({ inFlight: 2, waiting: 1 })
    releaseSlow()
    expect(typeof (await slow)).toBe('function')
  })

  test('reports the limit that was reached to a caller that waited in vain', async () => {
    const limiter = createInFlightLimiter({ total: 1, perKey: 1, waitMs: 1 })
    await acquireSlot(limiter, 'a')
    expect(await Promise.all([limiter.acquire('a'), limiter.acquire('b')])).toEqual(['key_limit', 'total_limit'])
    expect(limiter.waiting).toBe(0)
  })
})
