import { describe, expect, test } from '@jest/globals'
import { createRedactor } from './redact.ts'

describe('createRedactor', () => {
  test('replaces every secret, as it is and percent-encoded', () => {
    const redact = createRedactor(['s3cret/äöü +', null, 'token.1'])
    expect(redact(`a s3cret/äöü + b ${encodeURIComponent('s3cret/äöü +')} token.1 token.1`)).toBe(
      'a [hidden] b [hidden] [hidden] [hidden]',
    )
  })

  test('keeps secrets that are so short that they would match ordinary words', () => {
    expect(createRedactor(['order'])('the order was booked')).toBe('the order was booked')
  })
})
