import { isUtf8 } from 'node:buffer'
import { isIP } from 'node:net'
import { describe, expect, test } from '@jest/globals'
import { ANSWER_MAX_LENGTH, countCodePoints } from '@workflow-service/contract'
import * as fc from 'fast-check'
import { readAnswerText } from './answer-text.ts'
import { findAddressError } from './find-address-error.ts'
import { checkUrl } from './check-url.ts'

const runs = { seed: 20261122, numRuns: 1_000 }

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

  /** What URL parsers drop, change or decode, anywhere in a valid URL. */
  const odd = fc.oneof(
    fc.constantFrom('\t', '\n', '\r', ' ', '\0', '\u0085', '\u00A0', '\u3000', '\u2028', '\uFEFF', '\ud800', '\udc00'),
    fc.constantFrom(
      '\u00AD',
      '\u200B',
      '\u2060',
      '\uFE0F',
      '\u{E0061}',
      '\u180B',
      '\\',
      '@',
      ':',
      '%61',
      '%2e',
      '%00',
      '[',
      ']',
    ),
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
  )
  const oddUrl = fc
    .tuple(fc.constantFrom('https://hooks.example.com:8443/a?b=c#d', 'http://8.8.8.8/'), fc.nat(40), fc.nat(1), odd)
    .map(([text, index, replaced, more]) => text.slice(0, index) + more + text.slice(index + replaced))

  /** Texts in which one parser may see another host than the next. */
  const tokens =
    'http:// @ : / \\ # ? . % [ ] ::1 127.0.0.1 0x7f.1 localhost example.com 8.8.8.8 80 0 \u200B 。 %40 %2f'
  const joined = fc
    .array(fc.constantFrom(...tokens.split(' '), ' ', '\t'), { maxLength: 8 })
    .map((parts) => `https://${parts.join('')}`)

  test('accepts a public address, or the name of one host that every URL parser reads alike; never throws', () => {
    let accepted = 0
    fc.assert(
      fc.property(fc.oneof(url, anyText, fc.webUrl(), oddUrl, joined), (text) => {
        const check = checkUrl(text)
        if (!check.isAllowed) return check.message !== ''
        accepted += 1
        expect(text).not.toMatch(/[\p{Cc}\p{White_Space}\p{Cs}\\]/u)
        expect(text).toMatch(/^https?:\/\/[^/?#@%]+([/?#]|$)/i)
        const shown = text.split('/')[2]?.replaceAll(/[\u200C\u200D]/g, '')
        expect(shown?.split(/[?#]/)[0]).not.toMatch(/\p{Default_Ignorable_Code_Point}/u)
        const { hostname, username, password, protocol } = new URL(text)
        const ascii = /^([a-z0-9.。-]+)(?::\d*)?(?:[?#]|$)/iu.exec(shown ?? '')?.[1]
        const isAsShown = !ascii || hostname === ascii.toLowerCase().replaceAll('。', '.')
        const isPublic =
          isIP(check.host) === 0 ? /\.[a-z][a-z0-9-]*$/.test(check.host) : findAddressError(check.host) === undefined
        return isPublic && isAsShown && /^https?:$/.test(protocol) && username + password === '' && hostname !== ''
      }),
      runs,
    )
    expect(accepted).toBeGreaterThan(100)
  })
})

describe('readAnswerText', () => {
  test('returns null or one visible line of at most 300 characters, for any bytes', () => {
    const unseen = [
      '\v',
      '\f',
      '\r',
      '\n',
      '\0',
      '\u0085',
      '\u2028',
      '\u2029',
      '\u200F',
      '\u202E',
      '\u2066',
      '\u{E0061}',
    ]
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 1_300 }),
      fc.uint8Array({ maxLength: 4 }),
      fc
        .string({
          unit: fc.oneof(fc.constantFrom(...unseen), fc.string({ unit: 'binary', minLength: 1, maxLength: 1 })),
          maxLength: 320,
        })
        .map((text) => new TextEncoder().encode(text)),
      fc.constantFrom(...unseen).map((character) => new TextEncoder().encode(`a${character}b`)),
    )
    fc.assert(
      fc.property(bytes, (body) => {
        const text = readAnswerText(body)
        if (text === null) return
        expect(isUtf8(body)).toBe(true)
        expect(text).toMatch(/^[^\p{Cc}\u2028\u2029\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]+$/u)
        expect(countCodePoints(text)).toBeLessThanOrEqual(ANSWER_MAX_LENGTH)
      }),
      runs,
    )
  })
})
