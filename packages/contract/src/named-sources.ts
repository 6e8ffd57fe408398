import { WEBHOOK_SOURCE_NAME_MAX_LENGTH } from './limits.ts'
import { countCodePoints } from './schema/text.ts'

/**
 * A word, or any other single character. Scripts without spaces between words, or with particles attached to names,
 * have no words here: each of their characters is a token.
 */
const TOKEN = /[[\p{L}\p{M}\p{N}_]--[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hangul}\p{sc=Thai}]]+|\s+|./gsv

/** Unicode's limit for one character (UAX #15, "Stream-Safe Text Format"). */
const MANY_MARKS = /(\p{M}{30})\p{M}+/gu

/** Comparisons of tokens in one search, about 50 ms. A text that needs more, which only repetition does, names none. */
const MAX_STEPS = 1_000_000

/** The names that begin with the same tokens. */
interface NameNode<Source> {
  source?: Source
  readonly next: Map<string, NameNode<Source>>
}

/**
 * Finds the webhook sources that the text names, each once, in order of first appearance. Ignores case and the amount
 * of white space. A name matches whole words only ("Orders" is not in "Reorders", but is in "the Orders-list"). Where
 * names overlap, the one that begins first matches, and of those the longest ("Order intake" is not also "Order").
 */
export function findNamedSources<Source extends { readonly name: string }>(
  text: string,
  sources: readonly Source[],
): Source[] {
  return [...new Set(findNames(tokenize(text), sources).map(({ source }) => source))]
}

/** Where the tokens have the names of sources, in their order. */
function findNames<Source extends { readonly name: string }>(
  tokens: readonly string[],
  sources: readonly Source[],
): { readonly source: Source; readonly start: number; readonly end: number }[] {
  const root: NameNode<Source> = { next: new Map() }
  for (const source of sources) {
    let node = root
    for (const token of tokenize(source.name).map(foldToken)) {
      const child = node.next.get(token) ?? { next: new Map() }
      node.next.set(token, child)
      node = child
    }
    if (node !== root) node.source ??= source
  }
  const names = []
  const folded = tokens.map(foldToken)
  let steps = 0
  for (let start = 0, end = 1; start < folded.length; start = end, end = start + 1) {
    let source: Source | undefined
    let node = root.next.get(folded[start] ?? '')
    for (let next = start + 1; node; next += 1) {
      if (node.source) [source, end] = [node.source, next]
      node = node.next.get(folded[next] ?? '')
      steps += 1
    }
    if (steps > MAX_STEPS) return []
    if (source) names.push({ source, start, end })
  }
  return names
}

/**
 * The text between quotation marks on one line. An opening mark ends the text too, so that the search takes linear
 * time.
 */
const QUOTED = /"([^"\n]*)"|[“„]([^“”„\n]*)[”“]|«([^«»\n]*)»|「([^「」\n]*)」/gu

const UNKNOWN_NAMES_MAX = 20

/** In place of the names of sources, which may have quotation marks: no text has it, for PostgreSQL stores none. */
const KNOWN = '\0'

/**
 * Finds texts in quotation marks that name none of the webhook sources, each once, in order, at most 20. They may be
 * names of sources that do not exist. Texts that are longer than a name are left out.
 */
export function findUnknownNames(text: string, sources: readonly { readonly name: string }[]): string[] {
  // Most texts have none, and the search for names takes 10 ms in the largest (2 noisy cores, November 2026).
  if (text.search(QUOTED) === -1) return []
  const unknown = new Map<string, string>()
  const tokens = tokenize(text)
  for (const { start, end } of findNames(tokens, sources)) tokens.fill('', start, end).fill(KNOWN, start, start + 1)
  for (const [, ...parts] of tokens.join('').matchAll(QUOTED)) {
    const name = parts.find((part) => part !== undefined)?.trim() ?? ''
    if (name === '' || name.includes(KNOWN) || name.length > 2 * WEBHOOK_SOURCE_NAME_MAX_LENGTH) continue
    const key = tokenize(name).map(foldToken).join('')
    if (countCodePoints(name) > WEBHOOK_SOURCE_NAME_MAX_LENGTH || unknown.has(key)) continue
    unknown.set(key, name)
    if (unknown.size === UNKNOWN_NAMES_MAX) break
  }
  return [...unknown.values()]
}

/**
 * Makes compatible notations of a character equal. Normalizing 50,000 combining marks in a row takes 2 s: ICU sorts
 * them by insertion.
 */
export function normalizeText(text: string): string {
  return text.replace(MANY_MARKS, '$1').normalize('NFC')
}

/** The words, single other characters and runs of white space of the text. */
function tokenize(text: string): string[] {
  return normalizeText(text).trim().match(TOKEN) ?? []
}

/** A token as it is compared. */
function foldToken(token: string): string {
  return token.trim() === '' ? ' ' : token.toLowerCase()
}
