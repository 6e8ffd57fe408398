import { isUtf8 } from 'node:buffer'
import { describe, expect, test } from '@jest/globals'
import { ANSWER_MAX_LENGTH, countCodePoints } from '@workflow-service/contract'
import * as fc from 'fast-check'
import { anyCharacter } from '@workflow-service/testkit/any-character'
import { mayContainText, readAnswerText, readLines } from './answer-text.ts'

const read = (text: string): string | null => readAnswerText(Buffer.from(text, 'utf8'))

describe('readLines', () => {
  test.each<[string, string | number[], string | null]>([
    ['several lines and tabs, unchanged', 'no\n\tstock\n', 'no\n\tstock\n'],
    ['Windows line breaks as line breaks', 'no\r\nstock\r', 'no\nstock\n'],
    ['no NUL, control characters and direction marks', 'a\u0000b\u001B[31mc\u202Ed', 'ab[31mcd'],
    ['bytes that are not UTF-8 as U+FFFD', [0x67, 0x72, 0xfc, 0xdf], 'gr\uFFFD\uFFFD'],
    ['markup as it is', '<script>alert(1)</script>', '<script>alert(1)</script>'],
    ['nothing from only white space', ' \r\n ', null],
  ])('reads %s', (_, body, text) => expect(readLines(Buffer.from(body as string))).toBe(text))

  test('reads at most 4 KiB, and no part of a character', () => {
    expect(readLines(Buffer.from('x'.repeat(10_000)))).toBe('x'.repeat(4_096))
    expect(readLines(Buffer.from('ä世'.repeat(2_000)))).toBe('ä世'.repeat(819))
    expect(readLines(Buffer.from('x'.repeat(4_095) + 'ä'))).toBe('x'.repeat(4_095))
  })
})

describe('readAnswerText', () => {
  test.each(
    Object.entries({
      'an ordinary line': ['stored as 42', 'stored as 42'],
      'JSON on one line': ['{"id":"42"}', '{"id":"42"}'],
      'letters of any script': ['grüß 世界 👋🏽', 'grüß 世界 👋🏽'],
      'a line break at the end': ['stored\n', 'stored'],
      'a Windows line break at the end': ['stored\r\n', 'stored'],
      'a byte order mark': ['\uFEFFstored', 'stored'],
      'a tab, which becomes a space': ['a\tb', 'a b'],
      'control characters, which it removes': ['a\u0000b\u0007c\u001B[31md\u007Fe\u009Ff', 'abc[31mdef'],
      'direction marks, which it removes': ['pay \u202E001\u202C\u2066x\u2069\u200F\u061C', 'pay 001x'],
      'invisible tags, which it removes': ['ok\u{E0041}\u{E007F}', 'ok'],
      'spaces at both ends, unchanged': ['  stored  ', '  stored  '],
    }),
  )('reads %s', (_, [body, text]) => expect(read(body!)).toBe(text))

  test.each([
    ['an empty body', ''],
    ['only a line break', '\n'],
    ['two lines', 'a\nb'],
    ['an empty line before the text', '\na'],
    ['a carriage return', 'a\rb'],
    ['a line separator', 'a\u2028b'],
    ['only control characters', '\u0000\u0001'],
  ])('returns null for %s', (_, body) => expect(read(body)).toBeNull())

  test('counts up to 300 code points, without the line break at the end', () => {
    expect(read('x'.repeat(300))).toHaveLength(300)
    expect(read('👋'.repeat(300))).toBe('👋'.repeat(300))
    expect(read(`${'x'.repeat(300)}\r\n`)).toHaveLength(300)
    expect(read('x'.repeat(301))).toBeNull()
    expect(read('👋'.repeat(301))).toBeNull()
    expect(read(`${'x'.repeat(300)}\u0000`)).toBeNull()
  })

  test.each([
    ['a truncated character', [0xf0, 0x9f, 0x91]],
    ['UTF-16', [0xff, 0xfe, 0x61, 0x00]],
  ])('returns null for invalid UTF-8: %s', (_, bytes) => expect(readAnswerText(Uint8Array.from(bytes))).toBeNull())

  test('returns null or one visible line of at most 300 characters, for any bytes', () => {
    const unseen = Array.from('\v\f\r\n\0\u0085\u2028\u2029\u200F\u202E\u2066\u{E0061}')
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 1_300 }),
      fc.uint8Array({ maxLength: 4 }),
      fc
        .string({
          unit: fc.oneof(fc.constantFrom(...unseen), anyCharacter),
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
      { seed: 20261122, numRuns: 1_000 },
    )
  })
})

describe('mayContainText', () => {
  test.each([
    [{}, true],
    [{ 'content-length': '4096' }, true],
    [{ 'content-length': '4097' }, false],
    [{ 'content-encoding': 'identity' }, true],
    [{ 'content-encoding': ' Identity ' }, true],
    [{ 'content-encoding': 'gzip' }, false],
    [{ 'content-encoding': 'identity, gzip' }, false],
  ])('returns for %j: %p', (headers, expected) => expect(mayContainText(headers)).toBe(expected))
})
