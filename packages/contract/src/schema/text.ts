const WHITE_SPACE = /\p{White_Space}/u

/**
 * Removes Unicode White_Space at both ends. `String.trim` differs: it removes U+FEFF and leaves U+0085. The loops walk
 * inwards from the ends, because a pattern such as `\s+$` takes quadratic time on a long run of white space inside the
 * text.
 */
export function trimWhiteSpace(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && WHITE_SPACE.test(text.charAt(start))) start += 1
  while (end > start && WHITE_SPACE.test(text.charAt(end - 1))) end -= 1
  return text.slice(start, end)
}

/** Counts Unicode code points, the unit of every length in the contract. */
export function countCodePoints(text: string): number {
  let length = 0
  for (const _ of text) length += 1
  return length
}

/** Reports whether PostgreSQL can store the text: no NUL, no lone surrogate. */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000')
}

/** Replaces what PostgreSQL cannot store as text: NUL and unpaired surrogates. */
export function toStorableText(text: string): string {
  return isStorableText(text) ? text : text.toWellFormed().replaceAll('\u0000', '\uFFFD')
}

/**
 * White space, control and format characters, and those that are drawn as nothing; U+2800 is the empty braille pattern.
 */
const ALL_INVISIBLE = /^[\p{White_Space}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]+$/u

/**
 * Reports whether the text can name something for people: storable, and empty or with a character that they can see.
 */
export function isName(text: string): boolean {
  return isStorableText(text) && !ALL_INVISIBLE.test(text)
}

/** Cuts the text to at most `maxLength` code points. */
export function truncateText(text: string, maxLength: number): string {
  return countCodePoints(text) <= maxLength ? text : Array.from(text).slice(0, maxLength).join('')
}
