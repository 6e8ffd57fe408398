import { describe, expect, test } from '@jest/globals'
import { deriveId, nameBasedId } from './ids.ts'

describe('nameBasedId', () => {
  test('gives the id of the example in RFC 9562, appendix A.4', () => {
    const dns = '6ba7b810-9dad-11d1-80b4-00c04fd430c8'
    expect(nameBasedId(dns, 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2')
  })
})

describe('deriveId', () => {
  test('never changes for the same parts', () => {
    expect(deriveId('organization', 'Acme')).toBe('92c5fadb-f3dd-536f-8c0a-7e2b85c8b9ab')
  })

  test('distinguishes parts that are equal when joined', () => {
    expect(deriveId('file', 'a', 'bc')).not.toBe(deriveId('file', 'ab', 'c'))
  })
})
