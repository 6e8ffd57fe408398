/**
 * Rules for text that every wire shape shares: what white space is, how long a text is, what a database can hold.
 */

const LEADING_WHITE_SPACE = /^\p{White_Space}+/u
const TRAILING_WHITE_SPACE = /\p{White_Space}+$/u

/** Removes Unicode White_Space at both ends. `String.trim` differs: it takes U+FEFF and leaves U+0085. */
export function trimWhiteSpace(text: string): string {
  return text.replace(LEADING_WHITE_SPACE, '').replace(TRAILING_WHITE_SPACE, '')
}

/** The length that every limit of the contract counts: Unicode code points. */
export function codePointLength(text: string): number {
  let length = 0
  for (const _ of text) length += 1
  return length
}

/** Whether a database text can hold it: no NUL, no lone surrogate. */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000')
}

/** The text cut to at most `limit` code points. */
export function truncateText(text: string, limit: number): string {
  return codePointLength(text) <= limit ? text : Array.from(text).slice(0, limit).join('')
}
