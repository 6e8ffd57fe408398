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
  return createSearch(sources)(text)
}

function createSearch<Source extends { readonly name: string }>(
  sources: readonly Source[],
): (text: string) => Source[] {
  const root: NameNode<Source> = { next: new Map() }
  for (const source of sources) {
    let node = root
    for (const token of tokenize(source.name)) {
      const child = node.next.get(token) ?? { next: new Map() }
      node.next.set(token, child)
      node = child
    }
    if (node !== root) node.source ??= source
  }
  return (text) => {
    const named = new Set<Source>()
    const tokens = tokenize(text)
    let steps = 0
    for (let start = 0, end = 1; start < tokens.length; start = end, end = start + 1) {
      let found: Source | undefined
      let node = root.next.get(tokens[start] ?? '')
      for (let next = start + 1; node; next += 1) {
        if (node.source) [found, end] = [node.source, next]
        node = node.next.get(tokens[next] ?? '')
        steps += 1
      }
      if (steps > MAX_STEPS) return []
      if (found) named.add(found)
    }
    return [...named]
  }
}

/**
 * The text between quotation marks on one line. An opening mark ends the text too, so that the search takes linear
 * time.
 */
const QUOTED = /"([^"\n]*)"|[“„]([^“”„\n]*)[”“]|«([^«»\n]*)»|「([^「」\n]*)」/gu

const UNKNOWN_NAMES_MAX = 20

/**
 * Finds texts in quotation marks that name none of the webhook sources, each once, in order, at most 20. They may be
 * names of sources that do not exist. Texts that are longer than a name are left out.
 */
export function findUnknownNames(text: string, sources: readonly { readonly name: string }[]): string[] {
  const unknown = new Map<string, string>()
  const search = createSearch(sources)
  for (const [, ...parts] of text.matchAll(QUOTED)) {
    const name = parts.find((part) => part !== undefined)?.trim() ?? ''
    if (name === '' || name.length > 2 * WEBHOOK_SOURCE_NAME_MAX_LENGTH) continue
    const key = tokenize(name).join('')
    if (countCodePoints(name) > WEBHOOK_SOURCE_NAME_MAX_LENGTH || unknown.has(key)) continue
    if (search(name).length === 0) unknown.set(key, name)
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

/** The words, single other characters and single spaces of the text, in lower case. */
function tokenize(text: string): string[] {
  return Array.from(normalizeText(text).trim().match(TOKEN) ?? [], (token) =>
    token.trim() === '' ? ' ' : token.toLowerCase(),
  )
}
