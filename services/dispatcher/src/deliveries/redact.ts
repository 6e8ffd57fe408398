/** Secrets shorter than this are not redacted, because they would match ordinary words. */
const MIN_REDACTED_LENGTH = 6

/** Replaces a secret in texts and in the log. */
export const REDACTED = '[hidden]'

/** Whether texts are searched for the secret; also if there is none to hide. */
export function isRedactable(secret: string | null): boolean {
  return secret === null || secret.length >= MIN_REDACTED_LENGTH
}

/** Returns the text without secrets. */
export type Redact = (text: string) => string

/**
 * Creates a function that replaces the secrets in the texts of an endpoint, which may repeat what it was sent: as they are, in
 * Base64 and Base64url, and each of these percent-encoded or escaped as in JSON, whichever characters are encoded. The end of a
 * text may be the beginning of a secret that was cut off. Takes time in proportion to the lengths of text and secret, which only a
 * secret that repeats itself needs: a text that would take longer than some 20 ms is replaced as a whole.
 */
export function createRedactor(secrets: readonly (string | null)[]): Redact {
  const texts = secrets
    .filter((secret) => secret !== null)
    .filter(isRedactable)
    .flatMap((secret) => [withoutPadding(secret), toBase64(secret, 'base64'), toBase64(secret, 'base64url')])
  // Most deliveries have no text, so the spellings are computed for the first one.
  let patterns: Pattern[] | undefined
  return (text) => {
    patterns ??= [...new Set(texts)].map(toPattern)
    return patterns.reduce((rest, pattern) => replaceAll(rest, pattern), text)
  }
}

/** A secret as the numbers of its characters in `characters`, each of which can be written in several ways. */
interface Pattern {
  indexes: readonly number[]
  characters: readonly (readonly Spelling[])[]
}

/** `ignoresCase` for hexadecimal digits. */
interface Spelling {
  text: string
  ignoresCase: boolean
}

const JSON_ESCAPES: Record<string, string> = {
  '"': '\\"',
  '\\': '\\\\',
  '/': '\\/',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
}

function toPattern(secret: string): Pattern {
  const characters = Array.from(secret)
  const distinct = [...new Set(characters)]
  const indexes = new Map(distinct.map((character, index) => [character, index]))
  return {
    indexes: characters.map((character) => indexes.get(character)!),
    characters: distinct.map(toSpellings),
  }
}

function toSpellings(character: string): Spelling[] {
  const percents = Array.from(Buffer.from(character, 'utf8'), (byte) => `%${toHex(byte, 2)}`)
  const units = Array.from({ length: character.length }, (_, index) => `\\u${toHex(character.charCodeAt(index), 4)}`)
  const spellings = [
    { text: character, ignoresCase: false },
    { text: percents.join(''), ignoresCase: true },
    { text: units.join(''), ignoresCase: true },
  ]
  const escape = JSON_ESCAPES[character]
  if (escape !== undefined) spellings.push({ text: escape, ignoresCase: false })
  if (character === ' ') spellings.push({ text: '+', ignoresCase: false })
  return spellings
}

/** The longest spelling: four percent-encoded bytes, or two escaped UTF-16 units. */
const MAX_SPELLING_LENGTH = 12

const UNKNOWN = -1

/** Steps of the search in one text: a character of the text, with one position in the secret that it may continue. */
const MAX_STEPS = 1_000_000

/**
 * Replaces every part of the text that spells the pattern. Follows all spellings at the same time instead of trying one after
 * the other, which would take exponential time for a secret of backslashes.
 */
function replaceAll(text: string, { indexes, characters }: Pattern): string {
  const lowerCase = text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
  // For the next positions: where a spelling of the first n characters that ends there has begun, plus 1; 0 if there is none.
  const starts = Array.from({ length: MAX_SPELLING_LENGTH + 1 }, () => new Int32Array(indexes.length + 1))
  const startsAt = (position: number): Int32Array => starts[position % starts.length]!
  /** The largest n of each of them, so that a text without a secret takes no time for the rest. */
  const largest = new Int32Array(starts.length)
  let result = ''
  let copiedTo = 0
  let steps = 0
  const replace = (start: number, end: number): void => {
    result += text.slice(copiedTo, start) + REDACTED
    copiedTo = end
    for (const each of starts) each.fill(0)
    largest.fill(0)
  }
  /** Returns the lengths of the character's spellings at the position, as bits. The end of the text may cut a spelling off. */
  const findLengths = (spellings: readonly Spelling[], position: number): number => {
    const rest = text.length - position
    let lengths = 0
    for (const { text: spelling, ignoresCase } of spellings) {
      const length = Math.min(spelling.length, rest)
      if ((ignoresCase ? lowerCase : text).startsWith(spelling.slice(0, length), position)) lengths |= 1 << length
    }
    return lengths
  }
  const lengthsOf = new Int32Array(characters.length)
  for (let position = 0; position < text.length; position += 1) {
    const current = startsAt(position)
    current[0] = position + 1
    lengthsOf.fill(UNKNOWN)
    const last = Math.min(largest[position % starts.length]!, indexes.length - 1)
    steps += last + 1
    if (steps > MAX_STEPS) return REDACTED
    for (let count = 0; count <= last; count += 1) {
      const start = current[count]!
      if (start === 0) continue
      const character = indexes[count]!
      if (lengthsOf[character] === UNKNOWN) lengthsOf[character] = findLengths(characters[character]!, position)
      for (let lengths = lengthsOf[character]!; lengths > 0; lengths &= lengths - 1) {
        const end = position + 31 - Math.clz32(lengths & -lengths)
        const reached = startsAt(end)
        const known = reached[count + 1]!
        if (known === 0 || known > start) reached[count + 1] = start
        if (count >= largest[end % starts.length]!) largest[end % starts.length] = count + 1
      }
    }
    current.fill(0, 0, last + 1)
    largest[position % starts.length] = 0
    const complete = startsAt(position + 1)[indexes.length]!
    if (complete > 0) replace(complete - 1, position + 1)
  }
  const cutOff = startsAt(text.length).subarray(MIN_REDACTED_LENGTH)
  const earliest = cutOff.reduce((least, start) => (start > 0 && start < least ? start : least), Infinity)
  if (earliest !== Infinity) replace(earliest - 1, text.length)
  return result + text.slice(copiedTo)
}

function toHex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}

function toBase64(text: string, encoding: 'base64' | 'base64url'): string {
  return withoutPadding(Buffer.from(text, 'utf8').toString(encoding))
}

/** Base64 may be repeated without its padding. Without the last bits of a token, the rest of it says nothing. */
function withoutPadding(text: string): string {
  return text.replace(/={1,2}$/, '')
}
