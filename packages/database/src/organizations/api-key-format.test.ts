import { crc32 } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { createApiKey, hashApiKey, prefixOfApiKey } from './api-key-format.ts'

const BASE_62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const otherDigit = (character: string | undefined): string => (character === 'a' ? 'b' : 'a')

describe('createApiKey', () => {
  test('creates wfk_, 8 public characters, 32 random ones and 6 of checksum', () => {
    const { key, prefix } = createApiKey()
    expect(key).toMatch(/^wfk_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$/)
    expect(key.startsWith(`${prefix}_`)).toBe(true)
    expect(prefixOfApiKey(key)).toBe(prefix)
  })
})

describe('prefixOfApiKey', () => {
  const { key } = createApiKey()

  test('refuses a key with any one character changed', () => {
    for (let index = 'wfk_'.length; index < key.length; index += 1) {
      if (key[index] === '_') continue
      expect(prefixOfApiKey(key.slice(0, index) + otherDigit(key[index]) + key.slice(index + 1))).toBeUndefined()
    }
  })

  test('accepts a key whose checksum was computed elsewhere: CRC-32 of all before it, in base 62', () => {
    expect(prefixOfApiKey('wfk_demo0000_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123453HdgV3')).toBe('wfk_demo0000')
  })

  test('accepts exactly the texts of the form with the right checksum, which anyone can compute', () => {
    const odd = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 2 }),
      fc.constantFrom('_', '-', '\n', 'é'),
    )
    const unchecked = fc
      .tuple(fc.stringMatching(/^wfk_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}$/), fc.nat(45), fc.nat(2), odd, fc.boolean())
      .map(([text, index, replaced, more, isKept]) =>
        isKept ? text : text.slice(0, index) + more + text.slice(index + replaced),
      )
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      unchecked,
      unchecked.map(withChecksum),
      unchecked.map((each) => withChecksum(each.replace('wfk_', 'WFK_'))),
    )
    let accepted = 0
    fc.assert(
      fc.property(text, (candidate) => {
        const isKey =
          /^wfk_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$/.test(candidate) && candidate === withChecksum(candidate.slice(0, -6))
        accepted += Number(isKey)
        expect([candidate, prefixOfApiKey(candidate)]).toEqual([candidate, isKey ? candidate.slice(0, 12) : undefined])
      }),
      { seed: 1, numRuns: 1_000 },
    )
    expect(accepted).toBeGreaterThan(60)
  })
})

describe('hashApiKey', () => {
  test('is SHA-256 of the whole key', () => {
    expect(hashApiKey('abc').toString('hex')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  })
})

/** The text with its CRC-32 in base 62, in six digits. */
function withChecksum(text: string): string {
  const checksum = crc32(text)
  return text + [5, 4, 3, 2, 1, 0].map((power) => BASE_62[Math.floor(checksum / 62 ** power) % 62]).join('')
}
