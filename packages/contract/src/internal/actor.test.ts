import { describe, expect, test } from '@jest/globals'
import { formatActor, parseActor } from './actor.ts'

const ACTOR = { user_id: '0199d4a6-58a0-7b6e-9c39-6b1f2a3c4d5e', name: 'Žofie "Zo" 😀', address: '2001:db8::1' }

describe('X-Actor', () => {
  test('is printable ASCII, and reads as it was written', () => {
    expect(formatActor(ACTOR)).toMatch(/^[\x20-\x7e]+$/)
    expect(parseActor(formatActor(ACTOR))).toEqual(ACTOR)
  })

  test.each([
    '',
    'Ada',
    '{}',
    '{"user_id":"1","name":"Ada","address":null}',
    '{"user_id":null,"name":"\\u0000","address":null}',
  ])('is not %j', (text) => {
    expect(parseActor(text)).toBeUndefined()
  })
})
