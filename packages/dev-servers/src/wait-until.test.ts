import { describe, expect, test } from '@jest/globals'
import { waitUntil } from './wait-until.ts'

describe('waitUntil', () => {
  test('returns what the condition gives once it is truthy', async () => {
    let asked = 0
    expect(await waitUntil(() => (++asked === 3 ? 'third' : undefined), { intervalMs: 1 })).toBe('third')
  })

  test('takes a condition that throws for not yet', async () => {
    let asked = 0
    const condition = () => {
      asked++
      if (asked < 3) throw new Error('too early')
      return true
    }
    expect(await waitUntil(condition, { intervalMs: 1 })).toBe(true)
  })

  test('gives up on a condition that hangs', async () => {
    const waiting = waitUntil(() => new Promise<boolean>(() => {}), { timeoutMs: 20 })
    await expect(waiting).rejects.toThrow('Waited 20 ms in vain for the condition')
  })

  test('says what it waited for in vain, with the last error', async () => {
    const cause = new Error('refused')
    const condition = () => Promise.reject(cause)
    const waiting = waitUntil(condition, { timeoutMs: 20, intervalMs: 1, message: 'the port to open' })
    await expect(waiting).rejects.toMatchObject({ message: 'Waited 20 ms in vain for the port to open', cause })
  })
})
