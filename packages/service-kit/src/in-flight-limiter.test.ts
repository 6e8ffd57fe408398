import { describe, expect, test } from '@jest/globals'
import { InFlightLimiter, type InFlightLimits, type ReleaseSlot } from './in-flight-limiter.ts'

const LONG_MS = 60_000

const LIMITS: InFlightLimits = { total: 1, perKey: 1, waitMs: LONG_MS, maxWaiting: 100, maxWaitingPerKey: 100 }
const createLimiter = (change: Partial<InFlightLimits>) => new InFlightLimiter({ ...LIMITS, ...change })

/** Acquires a slot that must become free in time. */
async function acquireSlot(limiter: InFlightLimiter, key: string, arrivedMs?: number): Promise<ReleaseSlot> {
  const slot = await limiter.acquire(key, undefined, arrivedMs)
  if (typeof slot === 'string') throw new Error(slot)
  return slot
}

/** Acquires a slot for each key, releases each as soon as it is there, and returns the keys in the order of service. */
async function orderOfService(limiter: InFlightLimiter, keys: string[], release: ReleaseSlot): Promise<string[]> {
  const served: string[] = []
  const calls = keys.map(async (key) => {
    const slot = await acquireSlot(limiter, key.slice(0, 1))
    served.push(key)
    slot()
  })
  release()
  await Promise.all(calls)
  return served
}

describe('the in-flight limiter', () => {
  test('serves a caller that asks again by the time when it first asked', async () => {
    const limiter = createLimiter({})
    const release = await acquireSlot(limiter, 'a')
    const firstMs = performance.now()
    const served: string[] = []
    const wait = async (name: string, arrivedMs?: number): Promise<void> => {
      const slot = await acquireSlot(limiter, 'a', arrivedMs)
      served.push(name)
      slot()
    }
    const calls = [wait('second', firstMs + 1), wait('third', firstMs + 2), wait('first again', firstMs)]
    release()
    await Promise.all(calls)
    expect(served).toEqual(['first again', 'second', 'third'])
  })

  test('lets a caller that asks again replace the latest one if too many wait', async () => {
    const limiter = createLimiter({ maxWaitingPerKey: 2 })
    const release = await acquireSlot(limiter, 'a')
    const [one, two] = [limiter.acquire('a', LONG_MS, 1), limiter.acquire('a', LONG_MS, 3)]
    const again = limiter.acquire('a', LONG_MS, 2)
    expect(await two).toBe('key_limit')
    expect(await limiter.acquire('a', LONG_MS, 4)).toBe('key_limit')
    expect(limiter.waiting).toBe(2)
    release()
    const slot = await one
    if (typeof slot === 'function') slot()
    expect(typeof (await again)).toBe('function')
  })

  test('a caller that replaces the only one of its key is served', async () => {
    const limiter = createLimiter({ maxWaiting: 1 })
    const release = await acquireSlot(limiter, 'a')
    const replaced = limiter.acquire('b', LONG_MS, 2)
    const again = limiter.acquire('b', LONG_MS, 1)
    expect(await replaced).toBe('total_limit')
    release()
    expect(typeof (await again)).toBe('function')
  })

  test('gives slots up to the limits in total and of each key, and frees each once', async () => {
    const limiter = createLimiter({ total: 3, perKey: 2 })
    const [release] = [await acquireSlot(limiter, 'a'), limiter.tryAcquire('a')]
    expect([limiter.tryAcquire('a'), await limiter.acquire('a', 0)]).toEqual(['key_limit', 'key_limit'])
    expect(typeof limiter.tryAcquire('b')).toBe('function')
    expect([limiter.tryAcquire('c'), await limiter.acquire('c', 0)]).toEqual(['total_limit', 'total_limit'])
    expect(limiter).toMatchObject({ inFlight: 3, waiting: 0 })
    release()
    release()
    expect(limiter.inFlight).toBe(2)
    expect(typeof limiter.tryAcquire('c')).toBe('function')
    expect(limiter.tryAcquire('d')).toBe('total_limit')
  })

  test('leaves slots free for further keys, however many take all they may', () => {
    const limiter = createLimiter({ total: 12, perKey: 6, leavesFree: true })
    const takeAll = (key: string): number => {
      let count = 0
      while (typeof limiter.tryAcquire(key) === 'function') count += 1
      return count
    }
    expect(['a', 'b', 'c', 'd'].map(takeAll)).toEqual([6, 3, 2, 1])
    expect([limiter.tryAcquire('a'), limiter.tryAcquire('e')]).toEqual(['key_limit', 'total_limit'])
  })

  test('serves keys in turn, each in the order of its callers, so that one with many does not delay the others', async () => {
    const limiter = createLimiter({ perKey: 10 })
    const release = await acquireSlot(limiter, 'a')
    const keys = ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']
    expect(await orderOfService(limiter, keys, release)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
    expect(limiter).toMatchObject({ inFlight: 0, waiting: 0 })
  })

  test('gives a free slot to the first waiting caller whose key is below its limit', async () => {
    const limiter = createLimiter({ total: 2 })
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
    const limiter = createLimiter({ waitMs: 1 })
    await acquireSlot(limiter, 'a')
    expect(await Promise.all([limiter.acquire('a'), limiter.acquire('b')])).toEqual(['key_limit', 'total_limit'])
    expect(limiter.waiting).toBe(0)
  })

  test('refuses at once when too many callers wait, in total or for the key', async () => {
    const limiter = createLimiter({ total: 2, maxWaiting: 3, maxWaitingPerKey: 2 })
    const release = await acquireSlot(limiter, 'a')
    const waiters = [limiter.acquire('a'), limiter.acquire('a')]
    expect(await limiter.acquire('a')).toBe('key_limit')
    await acquireSlot(limiter, 'b')
    waiters.push(limiter.acquire('c'))
    // In all, in place of the last one of the key with the most.
    waiters.push(limiter.acquire('d'))
    expect(await waiters[1]).toBe('key_limit')
    expect(await limiter.acquire('e')).toBe('total_limit')
    expect(await limiter.acquire('a')).toBe('key_limit')
    expect(limiter.waiting).toBe(3)
    release()
    expect(typeof (await waiters[2])).toBe('function')
    limiter.stopWaiting()
    await Promise.all(waiters)
  })

  test('frees the slot of work that fails, and refuses work that gets none', async () => {
    const limiter = createLimiter({})
    const run = (key: string) =>
      limiter.run(key, () => Promise.reject(new Error('failed')), {
        waitMs: 0,
        refuse: (reached) => new Error(reached),
      })
    const works = [run('a'), run('b')]
    await expect(works[0]).rejects.toThrow('failed')
    await expect(works[1]).rejects.toThrow('total_limit')
    expect(limiter.inFlight).toBe(0)
  })

  test('ends all waiting on request', async () => {
    const limiter = createLimiter({})
    const release = await acquireSlot(limiter, 'a')
    const waiters = [limiter.acquire('a'), limiter.acquire('b')]
    limiter.stopWaiting()
    expect(await Promise.all(waiters)).toEqual(['key_limit', 'total_limit'])
    expect(await limiter.acquire('b')).toBe('total_limit')
    release()
    expect(limiter).toMatchObject({ inFlight: 0, waiting: 0 })
    expect(typeof (await limiter.acquire('b'))).toBe('function')
  })
})
