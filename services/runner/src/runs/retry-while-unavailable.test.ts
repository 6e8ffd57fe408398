import { setImmediate } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { createLeasedSession } from '../../test/support/leased-session.ts'
import { LeaseLostError, RunInterruptedError } from '../run-errors.ts'
import { retryWhileUnavailable } from './retry-while-unavailable.ts'

const unavailable = () => Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
const neverAborted = new AbortController().signal
const db = { ping: async () => {} }

test('an operation that the database refused is not repeated', async () => {
  let calls = 0
  const result = retryWhileUnavailable({ db, signal: neverAborted }, async () => {
    calls++
    throw new Error('cannot be stored')
  })
  await expect(result).rejects.toThrow('cannot be stored')
  expect(calls).toBe(1)
})

test.each([
  ['the runner abandons its sessions', 'abortAll', RunInterruptedError],
  ['the lease is lost', 'markLost', LeaseLostError],
] as const)('waiting for the database ends at once when %s', async (_what, method, errorClass) => {
  const { activeSessions, session } = createLeasedSession()
  const result = retryWhileUnavailable({ db, signal: session.abandoned }, async () => {
    throw unavailable()
  })
  activeSessions[method](session)
  await expect(result).rejects.toThrow(errorClass)
})

test('a lease can still be released after its session was abandoned', async () => {
  const { activeSessions, session } = createLeasedSession()
  activeSessions.abortAll()
  const result = await retryWhileUnavailable({ db, signal: session.abandoned }, async () => {
    await setImmediate()
    return 'released'
  })
  expect(result).toBe('released')
})
