import type { IncomingHttpHeaders } from 'node:http'
import { ANSWER_MAX_LENGTH, countCodePoints } from '@workflow-service/contract'

/** The most bytes of an answer's body that are read: 300 characters take at most 1,200 bytes. */
export const ANSWER_MAX_BYTES = 4096

/** Whether the headers allow readable text: the body is neither compressed nor announced as too long. */
export function mayContainText(headers: IncomingHttpHeaders): boolean {
  const length = headers['content-length']
  return !isCompressed(headers) && (length === undefined || Number(length) <= ANSWER_MAX_BYTES)
}

/** Whether the body is compressed: it is never decompressed. */
export function isCompressed(headers: IncomingHttpHeaders): boolean {
  return !['', 'identity'].includes(headers['content-encoding']?.trim().toLowerCase() ?? '')
}

/**
 * Returns the text of a complete body if it is one line of 1 to 300 characters of valid UTF-8, otherwise null. One line
 * break at the end is allowed and removed. The length is measured before invisible characters are removed and tabs
 * become spaces. Implements contract README, "Payload request".
 */
export function readAnswerText(body: Uint8Array): string | null {
  const text = decodeUtf8(body)?.replace(/(?:\r\n|\r|\n)$/u, '')
  if (text === undefined || /[\n\v\f\r\u0085\u2028\u2029]/u.test(text)) return null
  if (countCodePoints(text) > ANSWER_MAX_LENGTH) return null
  const visible = text.replaceAll('\t', ' ').replaceAll(DISGUISES, '')
  return visible === '' ? null : visible
}

/**
 * Returns the beginning of a body, at most `maxBytes`, as text with lines, or null if there is nothing to read. Bytes
 * that are not UTF-8 become U+FFFD; a character that the limit cuts off is left out. Lines and tabs stay, other
 * invisible characters are removed.
 */
export function readLines(body: Uint8Array, maxBytes = ANSWER_MAX_BYTES): string | null {
  const decoder = new TextDecoder('utf-8')
  const text = decoder.decode(body.subarray(0, maxBytes), { stream: body.length >= maxBytes })
  const lines = text.replaceAll(/\r\n?/gu, '\n')
  const visible = lines.replaceAll(DISGUISES, (character) => (/[\n\t]/u.test(character) ? character : ''))
  return visible.trim() === '' ? null : visible
}

/** Control characters, marks that change the writing direction, and tag characters, which no screen shows. */
const DISGUISES = /[\p{Cc}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069\u{E0000}-\u{E007F}]/gu

function decodeUtf8(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch {
    return undefined
  }
}
