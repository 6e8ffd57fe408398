import { describe, expect, test } from '@jest/globals'
import { createKeyedMutex } from './keyed-mutex.ts'

describe('the keyed mutex', () => {
  test('runs tasks of one key one after the other, also after a failed one', async () => {
    const runExclusive = createKeyedMutex()
    const order: string[] = []
    const gate = Promise.withResolvers<void>()
    const first = runExclusive('key', async () => {
      await gate.promise
      order.push('first')
      throw new Error('first failed')
    })
    const second = runExclusive('key', async () => {
      order.push('second')
      return 2
    })
    const third = runExclusive('key', async () => order.push('third'))
    expect(order).toEqual([])
    gate.resolve()
    await expect(first).rejects.toThrow('first failed')
    expect(await second).toBe(2)
    await third
    expect(order).toEqual(['first', 'second', 'third'])
  })

  test('runs tasks of different keys at the same time', async () => {
    const runExclusive = createKeyedMutex()
    void runExclusive('slow', () => new Promise(() => {}))
    expect(await runExclusive('fast', async () => 'done')).toBe('done')
  })
})
