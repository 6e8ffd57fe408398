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
 * Creates a function that replaces the secrets in the texts of an endpoint, which may repeat what it was sent: as they
 * are, in Base64 and Base64url, and each of these percent-encoded or escaped as in JSON, whichever characters are
 * encoded. The end of a text may be the beginning of a secret that was cut off. A text that still repeats a part of a
 * secret, also in another spelling, is replaced as a whole: see `createRepetitionFinder`. Takes time in proportion to
 * the lengths of text and secret, which only a secret that repeats itself needs: a text that would take longer than
 * some 20 ms is replaced as a whole, too.
 */
export function createRedactor(secrets: readonly (string | null)[]): Redact {
  const hidden = secrets.filter((secret) => secret !== null).filter(isRedactable)
  // Most deliveries have no text, so the spellings are computed for the first one.
  let prepared: { patterns: Pattern[]; repeats: (text: string) => boolean } | undefined
  return (text) => {
    prepared ??= {
      patterns: [...new Set(hidden.flatMap(toTexts))].map(toPattern),
      repeats: createRepetitionFinder(hidden),
    }
    const rest = prepared.patterns.reduce((left, pattern) => replaceAll(left, pattern), text)
    return prepared.repeats(rest) ? REDACTED : rest
  }
}

function toTexts(secret: string): string[] {
  return [withoutPadding(secret), toBase64(secret, 'base64'), toBase64(secret, 'base64url')]
}

/** So many letters and digits in a row are no coincidence: in hexadecimal they are 6 bytes of a secret, in Base64 9. */
const REPEATED_LENGTH = 12
/** A text that was encoded more often counts as a repetition. */
const MAX_LAYERS = 6

/**
 * Creates a function that returns whether a text repeats 12 letters and digits in a row of a secret, or all of a
 * shorter one: as it is, in hexadecimal, or in Base64 also within a longer text. Case, white space, line breaks and all
 * other characters between them do not count, nor how often the text was percent-encoded or escaped as in JSON or HTML.
 */
function createRepetitionFinder(secrets: readonly string[]): (text: string) => boolean {
  const words = secrets.flatMap(toForms).map(foldWords).filter(isRedactable)
  // By the few letters of a secret of punctuation, ordinary words would match.
  const symbols = secrets.filter((secret) => !isRedactable(foldWords(secret))).map(foldSpaces)
  const repeats = (text: string): boolean => {
    const folded = foldWords(text)
    const windows = new Set(Array.from({ length: folded.length }, (_, at) => folded.slice(at, at + REPEATED_LENGTH)))
    return (
      words.some((word) =>
        word.length <= REPEATED_LENGTH ? folded.includes(word) : hasWindow(word, REPEATED_LENGTH, windows),
      ) || symbols.some((symbol) => foldSpaces(text).includes(symbol))
    )
  }
  return (text) => {
    let layer = text.replaceAll(REDACTED, ' ')
    for (let count = 0; count < MAX_LAYERS; count += 1) {
      if (repeats(layer)) return true
      const inner = decodeLayer(layer)
      if (inner === layer) return false
      layer = inner
    }
    return true
  }
}

/**
 * The secret as it is, in hexadecimal, and what depends on it alone in the Base64 of a text that has it at any
 * position.
 */
function toForms(secret: string): string[] {
  const bytes = Buffer.from(secret, 'utf8')
  const inBase64 = [0, 1, 2].map((shift) => {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64')
    return encoded.slice(Math.ceil((shift * 4) / 3), Math.floor(((shift + bytes.length) * 4) / 3))
  })
  return [secret, bytes.toString('hex'), ...inBase64]
}

function hasWindow(text: string, length: number, windows: ReadonlySet<string>): boolean {
  for (let at = 0; at + length <= text.length; at += 1) if (windows.has(text.slice(at, at + length))) return true
  return false
}

function foldWords(text: string): string {
  return text.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, '')
}

function foldSpaces(text: string): string {
  return text.toLowerCase().replaceAll(/\s+/gu, '')
}

/** Removes one layer of percent-encoding, and of escapes of JSON and HTML. The result is shorter, or the same. */
function decodeLayer(text: string): string {
  return text
    .replaceAll(/(?:%[\da-f]{2})+/gi, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'))
    .replaceAll(/\\(?:u([\da-f]{4})|x([\da-f]{2})|[bfnrt])/gi, (_, ...[unit, byte]: (string | undefined)[]) =>
      unit === undefined && byte === undefined ? ' ' : String.fromCharCode(parseInt((unit ?? byte)!, 16)),
    )
    .replaceAll(
      /&(?:#x([\da-f]{1,5})|#(\d{1,6})|(amp)|\w{1,10});/gi,
      (_, ...[hex, decimal, amp]: (string | undefined)[]) => {
        if (hex !== undefined) return String.fromCodePoint(parseInt(hex, 16))
        return decimal === undefined ? (amp === undefined ? ' ' : '&') : String.fromCodePoint(Number(decimal))
      },
    )
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
 * Replaces every part of the text that spells the pattern. Follows all spellings at the same time instead of trying one
 * after the other, which would take exponential time for a secret of backslashes.
 */
function replaceAll(text: string, { indexes, characters }: Pattern): string {
  const lowerCase = text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
  // For the next positions: where a spelling of the first n characters that ends there has begun, plus 1; 0 if there is
  // none.
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
  /**
   * Returns the lengths of the character's spellings at the position, as bits. The end of the text may cut a spelling
   * off.
   */
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
