import { randomBytes } from 'node:crypto'
import { describe, expect, test } from '@jest/globals'
import { createSecretBox, SecretError } from './secrets.ts'

const key = (): string => randomBytes(32).toString('base64')
const owner = { organizationId: 'a0000000-0000-7000-8000-000000000001', id: 'b0000000-0000-7000-8000-000000000002' }

describe('a secret box', () => {
  test.each([['a'], ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'], ['mit Umlauten äöü und 🔑'], ['x'.repeat(1_000)]])(
    'gives back what was put in: %s',
    (secret) => {
      const box = createSecretBox([key()])
      expect(box.decrypt(owner, box.encrypt(owner, secret))).toBe(secret)
    },
  )

  test('contains nothing of the secret, and never the same bytes twice', () => {
    const box = createSecretBox([key()])
    const secret = 'a secret that must not be seen'
    const sealed = Array.from({ length: 50 }, () => box.encrypt(owner, secret))
    expect(new Set(sealed.map((bytes) => bytes.toString('hex'))).size).toBe(50)
    for (const bytes of sealed) expect(bytes.includes(secret)).toBe(false)
  })

  test('decrypts only for the organization and the source that the secret was encrypted for', () => {
    const box = createSecretBox([key()])
    const sealed = box.encrypt(owner, 'bound')
    const other = 'c0000000-0000-7000-8000-000000000003'
    expect(() => box.decrypt({ ...owner, id: other }, sealed)).toThrow(SecretError)
    expect(() => box.decrypt({ ...owner, organizationId: other }, sealed)).toThrow(SecretError)
    expect(() => box.decrypt({ organizationId: owner.id, id: owner.organizationId }, sealed)).toThrow(SecretError)
  })

  test('ignores the case of ids', () => {
    const box = createSecretBox([key()])
    const upper = { organizationId: owner.organizationId.toUpperCase(), id: owner.id.toUpperCase() }
    expect(box.decrypt(upper, box.encrypt(owner, 'bound'))).toBe('bound')
  })

  test('notices every changed, missing and added byte', () => {
    const box = createSecretBox([key()])
    const sealed = box.encrypt(owner, 'sealed')
    for (let index = 0; index < sealed.length; index += 1) {
      const changed = Buffer.from(sealed)
      changed[index] = (changed[index] ?? 0) ^ 1
      expect(() => box.decrypt(owner, changed)).toThrow(SecretError)
      expect(() => box.decrypt(owner, sealed.subarray(0, index))).toThrow(SecretError)
    }
    expect(() => box.decrypt(owner, Buffer.concat([sealed, Buffer.of(0)]))).toThrow(SecretError)
  })

  test('reports the id of the missing key, and no key', () => {
    const [oldKey, newKey] = [key(), key()]
    const old = createSecretBox([oldKey])
    const sealed = old.encrypt(owner, 'kept')
    expect(() => createSecretBox([newKey]).decrypt(owner, sealed)).toThrow(
      new SecretError(
        `The secret is encrypted with key ${old.keyId}, which SECRETS_KEY does not list: add that key to the list, or enter the secret again.`,
      ),
    )
    expect(Buffer.from(oldKey, 'base64').toString('hex')).not.toContain(old.keyId)
  })

  test.each([
    ['no key', []],
    ['a short key', [randomBytes(31).toString('base64')]],
    ['a long key', [randomBytes(33).toString('base64')]],
    ['a short second key', [key(), 'AAAA']],
  ])('refuses %s', (_what, keys) => {
    expect(() => createSecretBox(keys)).toThrow(TypeError)
  })
})
