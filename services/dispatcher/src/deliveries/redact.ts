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
 * are, in Base64 and Base64url, and each of these percent-encoded or escaped as in JSON. The end of a text may be the
 * beginning of a secret that was cut off. A text that still repeats a part of a secret, also in another spelling, is
 * replaced as a whole: see `createRepetitionFinder`. Takes time in proportion to the lengths of text and secret.
 */
export function createRedactor(secrets: readonly (string | null)[]): Redact {
  const hidden = secrets.filter((secret) => secret !== null).filter(isRedactable)
  // Most deliveries have no text, so the spellings are computed for the first one.
  let prepared: { spellings: readonly string[]; repeats: (text: string) => boolean } | undefined
  return (text) => {
    prepared ??= { spellings: toSpellings(hidden), repeats: createRepetitionFinder(hidden) }
    const rest = prepared.spellings.reduce(replaceSpelling, text)
    return prepared.repeats(rest) ? REDACTED : rest
  }
}

/** Returns what common encoders make of the secrets, the longest first: a spelling may contain another one. */
function toSpellings(secrets: readonly string[]): string[] {
  const texts = secrets.flatMap((secret) => {
    const bytes = Buffer.from(secret, 'utf8')
    return [secret, bytes.toString('base64'), bytes.toString('base64url')].map(withoutPadding)
  })
  const spellings = new Set(texts.flatMap((text) => [text, ...percentEncode(text), ...escapeAsJson(text)]))
  return [...spellings].toSorted((a, b) => b.length - a.length)
}

function percentEncode(text: string): string[] {
  const encoded = [encodeURIComponent(text.toWellFormed()), new URLSearchParams([['', text]]).toString().slice(1)]
  return encoded.flatMap((each) => [each, each.replaceAll(/%../g, (code) => code.toLowerCase())])
}

/** As JavaScript, Python and PHP write JSON: the latter two escape what is not ASCII, and PHP slashes. */
function escapeAsJson(text: string): string[] {
  const json = JSON.stringify(text).slice(1, -1)
  const toAscii = (toDigits: (code: number) => string): string =>
    json.replaceAll(/[^ -~]/g, (unit) => `\\u${toDigits(unit.charCodeAt(0)).padStart(4, '0')}`)
  const inAscii = toAscii((code) => code.toString(16))
  const inUpperCase = toAscii((code) => code.toString(16).toUpperCase())
  return [json, inAscii, inUpperCase].flatMap((each) => [each, each.replaceAll('/', '\\/')])
}

/** Base64 may be repeated without its padding. Without the last bits of a token, the rest of it says nothing. */
function withoutPadding(text: string): string {
  return text.replace(/={1,2}$/, '')
}

function replaceSpelling(text: string, spelling: string): string {
  const rest = text.replaceAll(spelling, REDACTED)
  const cutOff = beginningAtEnd(rest, spelling)
  return cutOff === 0 ? rest : `${rest.slice(0, -cutOff)}${REDACTED}`
}

/**
 * Returns the length of the longest beginning of the secret with which the text ends, or 0 if that is too short to be
 * redacted. Knuth, Morris and Pratt's search, since comparing each beginning takes quadratic time.
 */
function beginningAtEnd(text: string, secret: string): number {
  const joined = `${secret.slice(0, text.length)}\0${text.slice(-secret.length)}`
  const lengths = new Int32Array(joined.length)
  for (let at = 1; at < joined.length; at += 1) {
    let length = lengths[at - 1]!
    while (length > 0 && joined[at] !== joined[length]) length = lengths[length - 1]!
    lengths[at] = joined[at] === joined[length] ? length + 1 : 0
  }
  const longest = Math.min(lengths.at(-1)!, secret.length)
  return longest < MIN_REDACTED_LENGTH ? 0 : longest
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
  const short = words.filter((word) => word.length < REPEATED_LENGTH)
  const windows = new Set(words.flatMap(toWindows))
  // By the few letters of a secret of punctuation, ordinary words would match.
  const symbols = secrets.filter((secret) => !isRedactable(foldWords(secret))).map(foldSpaces)
  const repeats = (text: string): boolean => {
    const folded = foldWords(text)
    // An escape that was cut off is not decoded.
    const end = text.replace(/(?:%[\da-f]?|\\(?:u[\da-f]{0,3})?)$/i, '')
    return (
      short.some((word) => folded.includes(word)) ||
      toWindows(folded).some((window) => windows.has(window)) ||
      symbols.some((symbol) => foldSpaces(text).includes(symbol)) ||
      secrets.some((secret) => beginningAtEnd(end, secret) > 0)
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

/** All parts of a text of 12 characters. */
function toWindows(text: string): string[] {
  const count = Math.max(text.length - REPEATED_LENGTH + 1, 0)
  return Array.from({ length: count }, (_, at) => text.slice(at, at + REPEATED_LENGTH))
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
