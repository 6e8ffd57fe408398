import { describe, expect, test } from '@jest/globals'
import { createApiKey, hashApiKey, prefixOfApiKey } from './api-key-format.ts'

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
    const demo = 'wfk_demo0000_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123453HdgV3'
    expect(prefixOfApiKey(demo)).toBe('wfk_demo0000')
    for (const other of ['', `${demo}0`, ` ${demo}`, `${demo}\n`]) expect(prefixOfApiKey(other)).toBeUndefined()
  })
})

describe('hashApiKey', () => {
  test('is SHA-256 of the whole key', () => {
    expect(hashApiKey('abc').toString('hex')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  })
})
