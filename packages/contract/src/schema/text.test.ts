import { describe, expect, test } from '@jest/globals'
import { isName, trimWhiteSpace, truncateText } from './text.ts'

describe('trimWhiteSpace', () => {
  test.each([
    ['removes spaces, tabs and newlines', ' \t\r\n text \v\f', 'text'],
    ['removes U+0085 NEXT LINE, which trim() leaves', '\u0085text\u0085', 'text'],
    ['removes U+00A0, U+2028, U+2029 and U+3000', '\u00a0\u2028text\u2029\u3000', 'text'],
    ['keeps white space inside the text', 'a \u0085 b', 'a \u0085 b'],
    ['keeps U+FEFF, which is not White_Space although trim() removes it', '\ufefftext\ufeff', '\ufefftext\ufeff'],
    ['keeps U+200B ZERO WIDTH SPACE', '\u200btext', '\u200btext'],
    ['gives an empty text for white space alone', ' \u0085 ', ''],
  ])('%s', (_promise, text, trimmed) => {
    expect(trimWhiteSpace(text)).toBe(trimmed)
  })

  test('takes linear time on a long run of white space inside a text', () => {
    const text = `a${' '.repeat(200_000)}b`
    expect(trimWhiteSpace(text)).toBe(text)
  })
})

test('truncateText cuts between code points, never inside one, and keeps a text of exactly the limit', () => {
  expect([truncateText('😀😀😀', 2), truncateText('abc', 3)]).toEqual(['😀😀', 'abc'])
})

describe('isName', () => {
  test.each(['', 'Ada', ' Ada ', '数', '👨‍👩‍👧', '\u200bAda', '-'])('accepts %j', (name) => {
    expect(isName(name)).toBe(true)
  })

  test.each([
    ['spaces', ' \u00a0\u3000'],
    ['zero-width characters', '\u200b\u200d\ufeff'],
    ['a soft hyphen', '\u00ad'],
    ['characters that turn the direction', '\u202e\u2066'],
    ['fillers', '\u3164\u115f\u2800'],
    ['control characters', '\u0007\u009b'],
    ['a tag and a variation selector', '\u{e0041}\ufe0f'],
    ['a lone surrogate', 'Ada\ud800'],
  ])('refuses %s alone', (_what, name) => {
    expect(isName(name)).toBe(false)
  })
})
