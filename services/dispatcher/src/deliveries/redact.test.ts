import { describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { createRedactor, REDACTED } from './redact.ts'

const SECRET = 's3cret/äöü "+\\😀 \n'

/** The ways in which common encoders write a text. */
const ENCODINGS: Record<string, (text: string) => string> = {
  'as it is': (text) => text,
  'percent-encoded': encodeURIComponent,
  'percent-encoded in lower case': (text) => encodeURIComponent(text).replaceAll(/%../g, (code) => code.toLowerCase()),
  'percent-encoded as a form': (text) => new URLSearchParams([['', text]]).toString().slice(1),
  'in JSON': (text) => JSON.stringify(text).slice(1, -1),
  'in JSON with escaped slashes': (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  'in JSON in ASCII': (text) =>
    JSON.stringify(text)
      .slice(1, -1)
      .replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0').toUpperCase()}`),
  'in Base64': (text) => Buffer.from(text).toString('base64'),
  'in Base64 without padding': (text) => Buffer.from(text).toString('base64').replaceAll('=', ''),
  'in Base64url': (text) => Buffer.from(text).toString('base64url'),
  'in Base64, percent-encoded': (text) => encodeURIComponent(Buffer.from(text).toString('base64')),
}

const escapeAll = (text: string): string =>
  text.replaceAll(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

const toHex = (text: string): string => Buffer.from(text).toString('hex')

const mapCodes = (text: string, write: (code: number) => string): string =>
  Array.from(text, (character) => write(character.codePointAt(0)!)).join('')

describe('createRedactor', () => {
  test.each(Object.entries(ENCODINGS))('replaces a secret %s', (_name, encode) => {
    const redact = createRedactor([null, SECRET, 'token.1'])
    const redacted = redact(`before ${encode(SECRET)} between ${encode(SECRET)}|${encode('token.1')} after`)
    // Padding may stay: it says nothing.
    expect(redacted.replaceAll(/=|%3D/g, '')).toBe('before [hidden] between [hidden]|[hidden] after')
  })

  test.each<[string, (text: string) => string]>([
    ['in hexadecimal', toHex],
    ['in hexadecimal with colons, in upper case', (text) => toHex(text).toUpperCase().replaceAll(/../g, '$&:')],
    ['in HTML entities', (text) => mapCodes(text, (code) => `&#${code};`)],
    ['in hexadecimal HTML entities', (text) => mapCodes(text, (code) => `&#x${code.toString(16)};`)],
    ['in HTML entities, twice', (text) => mapCodes(text, (code) => `&amp;#${code};`)],
    [
      'in JavaScript, every character escaped',
      (text) => mapCodes(text, (code) => `\\x${code.toString(16).padStart(2, '0')}`),
    ],
    ['percent-encoded in every byte', (text) => toHex(text).replaceAll(/../g, '%$&')],
    ['in JSON, every character escaped', escapeAll],
    ['percent-encoded twice', (text) => encodeURIComponent(encodeURIComponent(text))],
    ['percent-encoded in every byte, twice', (text) => encodeURIComponent(toHex(text).replaceAll(/../g, '%$&'))],
    ['in upper case', (text) => text.toUpperCase()],
    ['spaced', (text) => Array.from(text).join(' ')],
    ['split in two lines', (text) => `${text.slice(0, 17)}\n  ${text.slice(17)}`],
    ['in lines of quotation', (text) => text.replaceAll(/.{7}/gs, '$&\r\n> ')],
    ['in Base64 of a longer text', (text) => Buffer.from(`key:${text}@`).toString('base64')],
    ['in Base64 of JSON', (text) => Buffer.from(JSON.stringify({ n: 1, secret: text })).toString('base64')],
    ['in Base64 in lines', (text) => Buffer.from(`{"s":"${text}"}`).toString('base64').replaceAll(/.{10}/g, '$&\n')],
    ['partly masked', (text) => `***${text.slice(5, -3)}***`],
  ])('shows no text that repeats a secret %s', (_name, encode) => {
    for (const secret of ['q7Zt+4bX/9mKe2PaLw0sVnR8uHcYdJ6gTfA1oBxEi3M=', 'correct horse battery staple é']) {
      expect(createRedactor([secret])(`got ${encode(secret)} from you`)).toBe(REDACTED)
    }
  })

  test('shows no text that has a short secret within Base64', () => {
    for (const before of ['u', 'us']) {
      expect(createRedactor(['pa55wd'])(Buffer.from(`${before}pa55wd:x`).toString('base64'))).toBe(REDACTED)
    }
  })

  test('shows texts that share ordinary words with a secret, and hides one that is encoded without end', () => {
    const redact = createRedactor(['our order intake secret 1', '-_-_-_-!'])
    for (const text of ['The order was taken in.', 'Order 1 intake &amp; 100%25 done', '%41&#66;\\u0043', '-_-_-!']) {
      expect(redact(text)).toBe(text)
    }
    expect(redact('- _ - _ - _ - !')).toBe(REDACTED)
    expect(redact(`%${'25'.repeat(9)}41`)).toBe(REDACTED)
  })

  test('ends for the longest secrets in a text of many layers', () => {
    const secret = Array.from({ length: 1_000 }, (_, index) => String.fromCodePoint(0x4e00 + index)).join('')
    const redact = createRedactor([secret, Buffer.from(secret).toString('base64')])
    expect(redact(`%25${'&amp;'.repeat(800)}`)).not.toBe('')
  })

  test('replaces the beginning of a secret at the end of a text that was cut off', () => {
    const redact = createRedactor([SECRET])
    for (const encode of Object.values(ENCODINGS)) {
      expect(redact(`at ${encode(SECRET).slice(0, -8)}`)).toBe('at [hidden]')
    }
    expect(redact(`at ${escapeAll(SECRET.slice(0, 6))}\\u00`)).toBe(REDACTED)
    expect(redact(`at ${SECRET.slice(0, 5)}`)).toBe('at s3cre')
  })

  test('keeps secrets that are so short that they would match ordinary words', () => {
    expect(createRedactor(['order'])('the order was booked')).toBe('the order was booked')
  })

  test('keeps texts without secrets', () => {
    const redact = createRedactor([SECRET])
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 100 }), (text) => {
        expect(redact(text)).toBe(text)
      }),
      { seed: 20261122, numRuns: 700 },
    )
  })

  test('takes no time of a long secret for each of many short texts, as those of a schema', () => {
    const redact = createRedactor(['é'.repeat(1_000)])
    const before = process.threadCpuUsage()
    for (let n = 0; n < 4_000; n += 1) redact(`field ${n}`)
    const { user, system } = process.threadCpuUsage(before)
    expect((user + system) / 1_000).toBeLessThan(300)
  })

  test('replaces a secret of backslashes, also its beginning', () => {
    const redact = createRedactor([`${'\\'.repeat(400)}x`])
    const text = '\\'.repeat(801)
    // The end may be the beginning of the secret: each of its 400 backslashes may be written as two.
    expect(redact(text)).toMatch(/^\\{0,3}\[hidden\]$/)
    expect(redact(`${text}y`)).toBe(`${text}y`)
    expect(redact(`${text}x`)).toMatch(/^\\{0,3}\[hidden\]$/)
  })

  test('leaves no secret in any encoding and in any surrounding text', () => {
    const secret = fc
      .string({
        unit: fc.oneof(
          fc.constantFrom('\\', '%', '"', '/', '+', ' ', '2', '5', 'u', '='),
          fc.integer({ min: 32, max: 0x24f }).map((code) => String.fromCharCode(code)),
          fc.constant('😀'),
        ),
        minLength: 6,
        maxLength: 40,
      })
      .filter((text) => !REDACTED.includes(text) && text.isWellFormed())
    const around = fc.string({ unit: fc.constantFrom('\\', '%', '4', 'u', '0', ' ', 'a', '"', '='), maxLength: 6 })
    fc.assert(
      fc.property(
        secret,
        around,
        around,
        fc.constantFrom(...Object.values(ENCODINGS), escapeAll),
        (text, before, after, encode) => {
          const encoded = encode(text)
          const redacted = createRedactor([text])(before + encoded + after)
          expect(redacted).toContain(REDACTED)
          expect(redacted).not.toContain(encoded)
        },
      ),
      { seed: 20261122, numRuns: 700 },
    )
  })
})
