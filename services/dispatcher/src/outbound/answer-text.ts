import type { IncomingHttpHeaders } from 'node:http'

/** No more of an answer's body is ever read: 300 characters take at most 1,200 bytes. */
export const maxAnswerBytes = 4096

/** The longest answer that counts as text, in Unicode code points (contract, section 4.5). */
export const maxAnswerLength = 300

/** Says by its headers whether a body may hold readable text: not compressed, and not announced as too long. */
export function mayHoldText(headers: IncomingHttpHeaders): boolean {
  const encoding = headers['content-encoding']?.trim().toLowerCase() ?? ''
  const length = headers['content-length']
  return (encoding === '' || encoding === 'identity') && (length === undefined || Number(length) <= maxAnswerBytes)
}

/**
 * The text of a whole body when it is one line of 1 to 300 characters of valid UTF-8, otherwise null. One line end may
 * close it. The length is that of the text as sent; then invisible characters that could disguise it are removed, and
 * tabs become spaces.
 */
export function readAnswerText(body: Uint8Array): string | null {
  const text = decode(body)?.replace(/(?:\r\n|\r|\n)$/u, '')
  if (text === undefined || /[\n\v\f\r\u0085\u2028\u2029]/u.test(text)) return null
  if (Array.from(text).length > maxAnswerLength) return null
  const visible = text.replaceAll('\t', ' ').replaceAll(disguises, '')
  return visible === '' ? null : visible
}

/** Control characters, the marks that turn the direction of writing, and the tag characters that no screen shows. */
const disguises = /[\p{Cc}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]/gu

function decode(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch {
    return undefined
  }
}
