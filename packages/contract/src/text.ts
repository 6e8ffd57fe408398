/**
 * Rules for text that every wire shape shares: what white space is, how long a text is, what a database can hold.
 */

const WHITE_SPACE = /\p{White_Space}/u

/**
 * Removes Unicode White_Space at both ends. `String.trim` differs: it takes U+FEFF and leaves U+0085. It walks inwards
 * from the ends, since a pattern such as `\s+$` takes quadratic time on a long run of white space inside the text.
 */
export function trimWhiteSpace(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && WHITE_SPACE.test(text.charAt(start))) start += 1
  while (end > start && WHITE_SPACE.test(text.charAt(end - 1))) end -= 1
  return text.slice(start, end)
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
