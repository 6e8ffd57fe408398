import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { parseTrustProxy } from './trust-proxy.ts'

describe('parseTrustProxy', () => {
  test('accepts only false, 1 to 99 proxies, or their networks, and never trusts everyone', () => {
    const parts = 'true|false|0|1|99|-1|10.0.0.0/8|::1|loopback|,| |/|x'.split('|')
    const joined = fc.array(fc.constantFrom(...parts), { maxLength: 5 }).map((each) => each.join(''))
    const text = fc.oneof(joined, fc.string({ maxLength: 20 }))
    fc.assert(
      fc.property(text, (candidate) => {
        let value: unknown
        try {
          value = parseTrustProxy(candidate)
        } catch (error) {
          return error instanceof Error && error.message.startsWith('must be false')
        }
        return value === false || Array.isArray(value) || (typeof value === 'number' && value >= 1 && value <= 99)
      }),
      { seed: 1, numRuns: 500 },
    )
  })

  test.each(['true', ' true', '01', '100', '1.5', '1e1'])('refuses %j', (text) => {
    expect(() => parseTrustProxy(text)).toThrow('must be false')
  })
})
