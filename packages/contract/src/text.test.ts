import { describe, expect, test } from '@jest/globals'
import { codePointLength, isStorableText, trimWhiteSpace, truncateText } from './text.ts'

describe('trimWhiteSpace', () => {
  test.each([
    ['spaces, tabs and newlines', ' \t\r\n text \v\f', 'text'],
    ['U+0085 NEXT LINE, which trim() leaves', '\u0085text\u0085', 'text'],
    ['U+00A0, U+2028, U+2029 and U+3000', '\u00a0\u2028text\u2029\u3000', 'text'],
    ['nothing inside the text', 'a \u0085 b', 'a \u0085 b'],
    ['no U+FEFF, which is not White_Space although trim() takes it', '\ufefftext\ufeff', '\ufefftext\ufeff'],
    ['no U+200B ZERO WIDTH SPACE', '\u200btext', '\u200btext'],
    ['everything when nothing else is there', ' \u0085 ', ''],
  ])('takes %s', (_what, given, trimmed) => {
    expect(trimWhiteSpace(given)).toBe(trimmed)
  })

  test('answers a long run of white space inside a text without backtracking over it', () => {
    const text = `a${' '.repeat(200_000)}b`
    expect(trimWhiteSpace(text)).toBe(text)
  })
})

describe('codePointLength', () => {
  test.each([
    ['', 0],
    ['abc', 3],
    ['😀', 1],
    ['e\u0301', 2],
    ['👨‍👩‍👧', 5],
  ])('counts %j as %d', (text, length) => {
    expect(codePointLength(text)).toBe(length)
  })
})

describe('isStorableText', () => {
  test.each([
    ['plain text', 'text', true],
    ['a pair of surrogates', '😀', true],
    ['NUL', 'a\u0000b', false],
    ['a lone high surrogate', 'a\ud83d', false],
    ['a lone low surrogate', '\ude00a', false],
  ])('judges %s', (_what, text, isStorable) => {
    expect(isStorableText(text)).toBe(isStorable)
  })
})

describe('truncateText', () => {
  test('cuts between code points, never inside one', () => {
    expect(truncateText('😀😀😀', 2)).toBe('😀😀')
  })

  test('leaves a text of exactly the limit alone', () => {
    expect(truncateText('abc', 3)).toBe('abc')
  })
})
