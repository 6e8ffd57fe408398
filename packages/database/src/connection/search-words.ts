import { setImmediate } from 'node:timers/promises'
import { foldCase } from './fold-case.ts'

/** Characters of Thai, Lao, Chinese and Japanese: without spaces between words, each counts as a word. */
const SPACELESS = String.raw`\u0e00-\u0eff\u2e80-\u9fff\uf900-\ufaff`
const WORD = new RegExp(String.raw`[${SPACELESS}]|[[\p{L}\p{N}\p{M}]--[${SPACELESS}]]+`, 'gv')
const EDGES = /^[^\p{L}\p{N}\p{M}]+|[^\p{L}\p{N}\p{M}]+$/gu
/** Of JSON. Raw texts may have backslashes, too, so that words are taken with and without them. */
const ESCAPE = /\\(?:u[0-9a-f]{4}|.)/gis

const textsOf = (text: string): string[] =>
  (text.includes('\\') ? [text, text.replaceAll(ESCAPE, ' ')] : [text]).map(foldCase)

/** Adds the words of a text to `words`: runs of letters and digits, with folded case. */
export function addWords(text: string, words: Set<string>): void {
  // Twice as fast as `matchAll`, with all words in memory.
  for (const each of textsOf(text)) for (const word of each.match(WORD) ?? []) words.add(word)
}

/** Words of a text, in a row, between which other work of the process has its turn, and characters of a short text. */
const WORDS_AT_ONCE = 2_000
const SHORT_TEXT = 10_000

/** Adds the words of a text of any length, until they are more than a filter takes. */
export async function collectWords(text: string, words: Set<string>): Promise<void> {
  if (text.length <= SHORT_TEXT) return addWords(text, words)
  let count = 0
  for (const each of textsOf(text)) {
    for (const [word] of each.matchAll(WORD)) {
      words.add(word)
      if (words.size > MAX_WORDS_IN_FILTER) return
      count += 1
      if (count % WORDS_AT_ONCE === 0) await setImmediate()
    }
  }
}

/** What a search compares: texts match if they have every part, each not within a longer word. */
export interface WordSearch {
  readonly words: ReadonlySet<string>
  readonly parts: readonly string[]
  /** Regular expressions of PostgreSQL for the parts, for texts in lower case. */
  readonly patterns: readonly string[]
}

// A part may follow an escape sequence of JSON such as \n, whose last character is a letter.
const BEFORE = String.raw`(^|[^[:alnum:]]|[${SPACELESS}]|\\[bfnrt]|\\u00[0-9a-f][0-9a-f])`
const AFTER = String.raw`($|[^[:alnum:]]|[${SPACELESS}])`
const startsSpaceless = new RegExp(`^[${SPACELESS}]`, 'u')
const endsSpaceless = new RegExp(`[${SPACELESS}]$`, 'u')

/** Splits a search into its parts: none without a search. Undefined if it has neither a letter nor a digit. */
export function parseSearch(search: string | undefined): WordSearch | undefined {
  if (!search?.trim()) return { words: new Set(), parts: [], patterns: [] }
  const words = new Set<string>()
  const trimmed = search
    .toLowerCase()
    .split(/[\s"\\]+/u)
    .map((part) => part.replaceAll(EDGES, ''))
  const parts = [...new Set(trimmed)].filter(Boolean)
  for (const part of parts) addWords(part, words)
  const patterns = parts.map((part) => {
    const [before, after] = [startsSpaceless.test(part) ? '' : BEFORE, endsSpaceless.test(part) ? '' : AFTER]
    return before + part.replaceAll(/[.*+?^${}()|[\]/-]/g, String.raw`\$&`) + after
  })
  return words.size > 0 ? { words, parts, patterns } : undefined
}

/** Returns the SQL condition that a text matches a search, whose parts and patterns are the parameters. */
export function matches(text: string, parts: string, patterns: string): string {
  // Most texts do not have the parts, which is found several times as fast without the patterns.
  return `(cardinality(${parts}::text[]) = 0 OR (
    SELECT bool_and(CASE WHEN strpos(folded, part) > 0 THEN folded ~ pattern ELSE false END)
    FROM (SELECT lower(${text}) AS folded OFFSET 0) AS searched, unnest(${parts}::text[], ${patterns}::text[]) AS sought (part, pattern)
  ))`
}

/** For each word. With 20 bits for it, 3 of 10,000 filters say that they may have a word that they do not have. */
const HASHES = 6
const BITS_PER_WORD = 20
/** A filter has to fit into a page of 8 KiB. With more words it is less exact. */
const MAX_FILTER_BYTES = 7_168
/** The words that fill a filter. */
export const MAX_FILTER_WORDS = Math.floor((MAX_FILTER_BYTES * 8) / BITS_PER_WORD)
/** With more, most bits were set. */
const MAX_WORDS_IN_FILTER = 4 * MAX_FILTER_WORDS
/** A filter that may have every word: its rows are compared by every search. */
export const FULL_FILTER = Buffer.of(0xff)

/** The two numbers of a word from which `hashOf` makes the others. */
function hashWord(word: string): readonly [number, number] {
  let [one, two] = [0x811c9dc5, 0x9747b28c]
  for (let at = 0; at < word.length; at += 1) {
    one = Math.imul(one ^ word.charCodeAt(at), 0x01000193)
    two = Math.imul(two ^ word.charCodeAt(at), 0x5bd1e995)
  }
  return [Math.imul(one ^ (one >>> 15), 0x2c1b3c6d), Math.imul(two ^ (two >>> 13), 0x297a2d39) | 1]
}

/** A number of 31 bits, whose remainder by the bits of a filter is a bit of the word. */
const hashOf = (one: number, two: number, index: number) => (one + Math.imul(index, two)) >>> 1

/** Makes the Bloom filter of these words. */
export function makeFilter(words: ReadonlySet<string>): Buffer {
  if (words.size > MAX_WORDS_IN_FILTER) return FULL_FILTER
  const filter = Buffer.alloc(Math.min(Math.ceil((words.size * BITS_PER_WORD) / 8), MAX_FILTER_BYTES))
  const bits = filter.length * 8
  for (const word of words) {
    const [one, two] = hashWord(word)
    for (let index = 0; index < HASHES; index += 1) {
      const bit = hashOf(one, two, index) % bits
      filter[bit >> 3]! |= 1 << (bit & 7)
    }
  }
  return filter
}

/**
 * Words that are looked for in filters: with more, a statement would take long to plan. Those with digits, then the
 * longest, come first: the first word that a filter does not have ends its test, and numbers are in the fewest.
 */
const MAX_WORDS = 8
const rarity = (word: string) => (/\d/.test(word) ? 1_000 : 0) + word.length

/** Returns the condition that a filter, the column `words`, may have all of these. */
export function mayHaveWords(words: Iterable<string>): string {
  const longest = [...words].toSorted((a, b) => rarity(b) - rarity(a)).slice(0, MAX_WORDS)
  const hashes = longest.flatMap((word) =>
    Array.from({ length: HASHES }, (_, index) => hashOf(...hashWord(word), index)),
  )
  return hashes.map((hash) => `get_bit(words, ${hash} % (octet_length(words) * 8)) = 1`).join(' AND ') || 'true'
}
