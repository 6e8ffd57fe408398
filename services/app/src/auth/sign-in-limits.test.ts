import { describe, expect, test } from '@jest/globals'
import { serviceUnavailable } from '@workflow-service/service-kit'
import { createCapturedLogger } from '@workflow-service/testkit'
import { createSignInLimits, delayMs } from './sign-in-limits.ts'

const { logger } = createCapturedLogger({ service: 'test' })
const visitor = (address: string) => ({ address, userAgent: null, cookies: undefined })
const fail = () => Promise.resolve(undefined)
const succeed = () => Promise.resolve(true as const)

describe('createSignInLimits', () => {
  test('refuses a network after 20 failures, and counts an IPv6 /64 as one', async () => {
    const limits = createSignInLimits({ url: undefined, logger })
    for (let count = 0; count < 20; count += 1) {
      await limits.attempt(visitor(`2001:db8:0:1::${count}`), `person-${count}@acme.test`, fail)
    }
    const refused = limits.attempt(visitor('2001:db8:0:1:ffff::1'), 'other@acme.test', succeed)
    const retryAfter = { 'Retry-After': expect.stringMatching(/^(300|29\d)$/) as unknown }
    await expect(refused).rejects.toMatchObject({ code: 'rate_limited', headers: retryAfter })
    await expect(limits.attempt(visitor('2001:db8:0:2::1'), 'other@acme.test', succeed)).resolves.toBe(true)
    limits.close()
  })

  test('counts no success', async () => {
    const limits = createSignInLimits({ url: undefined, logger })
    for (let count = 0; count < 30; count += 1) {
      await expect(limits.attempt(visitor('192.0.2.1'), 'ada@acme.test', succeed)).resolves.toBe(true)
    }
    limits.close()
  })

  test.each([
    ['the database is unavailable', Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })],
    ['too many sign in at once', serviceUnavailable('Too many people sign in at once; try again in a moment.')],
  ])('counts no attempt that was not checked, because %s, but one that fails afterwards', async (_case, error) => {
    const limits = createSignInLimits({ url: undefined, logger })
    for (let count = 0; count < 30; count += 1) {
      const attempt = limits.attempt(visitor('192.0.2.1'), `${count}@acme.test`, (verifying) =>
        verifying(Promise.reject(error)),
      )
      await expect(attempt).rejects.toBe(error)
    }
    for (let count = 0; count < 20; count += 1) {
      const attempt = limits.attempt(visitor('192.0.2.1'), `${count}@acme.test`, () => Promise.reject(error))
      await expect(attempt).rejects.toBe(error)
    }
    const refused = limits.attempt(visitor('192.0.2.1'), 'ada@acme.test', succeed)
    await expect(refused).rejects.toMatchObject({ code: 'rate_limited' })
    limits.close()
  })

  test('delays attempts at one account from everywhere, without ever refusing them', async () => {
    const limits = createSignInLimits({ url: undefined, logger })
    for (let count = 0; count < 6; count += 1) {
      await limits.attempt(visitor(`192.0.2.${count}`), 'Ada@acme.test', fail)
    }
    const startedMs = performance.now()
    await expect(limits.attempt(visitor('198.51.100.1'), 'ada@ACME.test', succeed)).resolves.toBe(true)
    expect(performance.now() - startedMs).toBeGreaterThan(450)
    limits.close()
  })

  test('doubles the delay from the sixth failure to 8 seconds', () => {
    expect([0, 4, 5, 6, 9, 10, 1_000].map(delayMs)).toEqual([0, 0, 250, 500, 4_000, 8_000, 8_000])
  })
})
