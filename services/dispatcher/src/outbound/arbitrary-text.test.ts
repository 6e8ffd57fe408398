import { isIP } from 'node:net'
import { describe, expect, test } from '@jest/globals'
import { ANSWER_MAX_LENGTH, countCodePoints } from '@workflow-service/contract'
import * as fc from 'fast-check'
import { readAnswerText } from './answer-text.ts'
import { checkAddress } from './check-address.ts'
import { checkUrl } from './check-url.ts'
import { parseEgressProxy } from './egress-proxy.ts'
import { parseSubnets } from './parse-subnets.ts'

const runs = { seed: 20261122, numRuns: 5_000 }

/** Characters that mean something in URLs, addresses and subnets, and any others. */
const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom(
      ...Array.from('/:@.%[]?#\\-0123456789abcdefx \t\n,'),
      '\u3002',
      '\uFF0E',
      '\u00AD',
      '\u200D',
      '１',
      'ß',
      'é',
    ),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  ),
  maxLength: 60,
})

describe('checkUrl', () => {
  const host = fc.oneof(
    fc.domain(),
    fc.ipV4(),
    fc.ipV4Extended(),
    fc.ipV6().map((ip) => `[${ip}]`),
    anyText,
  )
  const url = fc
    .tuple(fc.constantFrom('http://', 'https://', 'HTTPS:/', 'ftp://', ''), host, anyText)
    .map((parts) => parts.join(''))

  test('accepts a public address, or the name of one host that every URL parser reads alike; never throws', () => {
    let accepted = 0
    fc.assert(
      fc.property(fc.oneof(url, anyText, fc.webUrl()), (text) => {
        const check = checkUrl(text)
        if (!check.isAllowed) return check.message !== ''
        accepted += 1
        const { hostname, username, password, protocol } = new URL(text)
        const isPublic =
          check.host.kind === 'address'
            ? checkAddress(check.host.address).isAllowed
            : check.host.kind === 'name' && isIP(check.host.name) === 0 && /\.[a-z][a-z0-9-]*$/.test(check.host.name)
        return isPublic && /^https?:$/.test(protocol) && username + password === '' && hostname !== ''
      }),
      runs,
    )
    expect(accepted).toBeGreaterThan(100)
  })
})

describe('parseSubnets', () => {
  test('reads a list or says which entries are wrong, and contains the addresses that it names', () => {
    const cidr = fc
      .tuple(fc.oneof(fc.ipV4(), fc.ipV6()), fc.integer({ min: 0, max: 140 }))
      .map(([address, prefix]) => `${address}/${prefix}`)
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), cidr, anyText), { maxLength: 4 }), (entries) => {
        const text = entries.join(',')
        let result: unknown
        try {
          const subnets = parseSubnets(text)
          result = subnets.cidrs.every((each) => subnets.contains(each.replace(/\/.*/, '')))
        } catch (error) {
          result = (error as Error).message.startsWith('is not a list of subnets: ')
        }
        expect(result).toBe(true)
      }),
      runs,
    )
  })
})

describe('parseEgressProxy', () => {
  test('reads a URL or refuses it without repeating it', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        let message = ''
        try {
          parseEgressProxy(`http://user:${text}`)
        } catch (error) {
          message = (error as Error).message
        }
        expect(message).toMatch(/^$|^must be the URL of an HTTP CONNECT proxy$|^has a user name or password with/)
      }),
      runs,
    )
  })
})

describe('readAnswerText', () => {
  test('returns null or one visible line of at most 300 characters, for any bytes', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 1_300 }),
      fc.string({ unit: 'binary', maxLength: 320 }).map((text) => new TextEncoder().encode(text)),
    )
    fc.assert(
      fc.property(bytes, (body) => {
        const text = readAnswerText(body)
        const isOneLine = text?.isWellFormed() === true && /^\P{Cc}+$/u.test(text)
        expect(text === null || (isOneLine && countCodePoints(text) <= ANSWER_MAX_LENGTH)).toBe(true)
      }),
      runs,
    )
  })
})
