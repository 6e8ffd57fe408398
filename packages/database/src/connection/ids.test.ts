import { expect, test } from '@jest/globals'
import { deriveId, nameBasedId, newId } from './ids.ts'

test('newId gives ids that sort in the order of their creation, also within a millisecond', () => {
  const ids = Array.from({ length: 2_000 }, newId)
  expect(ids.toSorted()).toEqual(ids)
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('nameBasedId gives the id of the example in RFC 9562, appendix A.4', () => {
  const dns = '6ba7b810-9dad-11d1-80b4-00c04fd430c8'
  expect(nameBasedId(dns, 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2')
})

test('deriveId distinguishes parts that are equal when joined', () => {
  expect(deriveId('file', 'a', 'bc')).not.toBe(deriveId('file', 'ab', 'c'))
})
