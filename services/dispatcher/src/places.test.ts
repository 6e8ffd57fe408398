import { describe, expect, test } from '@jest/globals'
import { createPlaces, type Release } from './places.ts'

const LONG = 60_000

/** Takes a place that is free. */
async function take(places: ReturnType<typeof createPlaces>, key: string): Promise<Release> {
  const place = await places.take(key)
  if (typeof place === 'string') throw new Error(place)
  return place
}

describe('places', () => {
  test('are as many in all, and for each key, as the options say', async () => {
    const places = createPlaces({ total: 3, perKey: 2, waitMs: 0 })
    await take(places, 'a')
    await take(places, 'a')
    expect(await places.take('a')).toBe('full_for_key')
    await take(places, 'b')
    expect(await places.take('b')).toBe('full')
    expect(places).toMatchObject({ taken: 3, waiting: 0 })
  })

  test('come free once, however often they are given back', async () => {
    const places = createPlaces({ total: 1, perKey: 1, waitMs: 0 })
    const release = await take(places, 'a')
    release()
    release()
    expect(places.taken).toBe(0)
    await take(places, 'a')
    expect(await places.take('b')).toBe('full')
  })

  test('are given to those who wait in the order in which they came', async () => {
    const places = createPlaces({ total: 1, perKey: 1, waitMs: LONG })
    const served: string[] = []
    let release = await take(places, 'a')
    const waiters = ['first', 'second', 'third'].map(async (key) => {
      const place = await take(places, key)
      served.push(key)
      release = place
    })
    for (const waiter of waiters) {
      release()
      await waiter
    }
    expect(served).toEqual(['first', 'second', 'third'])
  })

  test('a key that is full holds up nobody else', async () => {
    const places = createPlaces({ total: 10, perKey: 1, waitMs: LONG })
    const release = await take(places, 'slow')
    const waiter = places.take('slow')
    await take(places, 'fast')
    expect(places.waiting).toBe(1)
    release()
    expect(typeof (await waiter)).toBe('function')
  })

  test('a place that comes free goes to the first whose key has room', async () => {
    const places = createPlaces({ total: 2, perKey: 1, waitMs: LONG })
    const releaseSlow = await take(places, 'slow')
    const release = await take(places, 'other')
    const slow = places.take('slow')
    const fast = places.take('fast')
    release()
    expect(typeof (await fast)).toBe('function')
    expect(places).toMatchObject({ taken: 2, waiting: 1 })
    releaseSlow()
    expect(typeof (await slow)).toBe('function')
  })

  test('who has waited in vain is told which limit it was', async () => {
    const places = createPlaces({ total: 1, perKey: 1, waitMs: 1 })
    await take(places, 'a')
    expect(await Promise.all([places.take('a'), places.take('b')])).toEqual(['full_for_key', 'full'])
    expect(places.waiting).toBe(0)
  })
})
