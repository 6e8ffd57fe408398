import { describe, expect, test } from '@jest/globals'
import { createInTurn } from './in-turn.ts'

describe('work in turn', () => {
  test('of one key follows the work before it, whether that failed or not', async () => {
    const inTurn = createInTurn()
    const order: string[] = []
    const gate = Promise.withResolvers<void>()
    const first = inTurn('key', async () => {
      await gate.promise
      order.push('first')
      throw new Error('first failed')
    })
    const second = inTurn('key', async () => {
      order.push('second')
      return 2
    })
    const third = inTurn('key', async () => order.push('third'))
    expect(order).toEqual([])
    gate.resolve()
    await expect(first).rejects.toThrow('first failed')
    expect(await second).toBe(2)
    await third
    expect(order).toEqual(['first', 'second', 'third'])
  })

  test('of different keys does not wait', async () => {
    const inTurn = createInTurn()
    const never = inTurn('slow', () => new Promise(() => {}))
    expect(await inTurn('fast', async () => 'done')).toBe('done')
    never.catch(() => {})
  })
})
