import { expect, test } from '@jest/globals'
import { createModelLimitGate } from './model-limit-gate.ts'

// The database has no limit of the model: not yet, or no longer.
const db = { ping: async () => {}, pool: { query: async () => ({ rows: [] }) } } as never

test('while the API asks to wait, no time is free, although the database has no limit', async () => {
  const { signal } = new AbortController()
  let nowMs = 0
  const gate = createModelLimitGate(db, () => nowMs)
  const reserve = () => gate.reserve('model', { organizationId: 'o', maxDelayMs: 30_000, isRepeated: false }, signal)
  await gate.recordLimit('model', 5_000, signal)
  expect(await reserve()).toEqual({ delayMs: 5_000, isReserved: false })
  nowMs = 500
  expect(await reserve()).toEqual({ delayMs: 4_500, isReserved: false })
  nowMs = 5_000
  expect(await reserve()).toEqual({ delayMs: 0, isReserved: true })
  expect(gate.isBlocked('model')).toBe(false)
})
