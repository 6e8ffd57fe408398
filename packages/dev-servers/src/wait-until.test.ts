import { describe, expect, test } from '@jest/globals'
import { waitUntil } from './wait-until.ts'

describe('waitUntil', () => {
  test('rejects while the condition is still pending', async () => {
    const waiting = waitUntil(() => new Promise<boolean>(() => {}), { timeoutMs: 20 })
    await expect(waiting).rejects.toThrow('Waited 20 ms for the condition')
  })

  test('rejects with the message and the last error', async () => {
    const cause = new Error('refused')
    const condition = () => Promise.reject(cause)
    const waiting = waitUntil(condition, { timeoutMs: 20, intervalMs: 1, message: 'the port to open' })
    await expect(waiting).rejects.toMatchObject({ message: 'Waited 20 ms for the port to open', cause })
  })
})
