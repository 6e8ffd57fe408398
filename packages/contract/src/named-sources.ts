import { WEBHOOK_SOURCE_NAME_MAX_LENGTH } from './limits.ts'
import { countCodePoints } from './schema/text.ts'

/**
 * A word, or any other single character. Scripts without spaces between words, or with particles attached to names, have
 * no words here: each of their characters is a token.
 */
const TOKEN =
  /[[\p{L}\p{M}\p{N}_]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]]+|\s+|./gsv

/** Unicode's limit for one character (UAX #15, "Stream-Safe Text Format"). */
const MANY_MARKS = /(\p{M}{30})\p{M}+/gu

/**
 * Finds the webhook sources that the text names, each once, in order of first appearance. Ignores case and the amount of
 * white space. A name matches whole words only ("Orders" is not in "Reorders", but is in "the Orders-list"). Where names
 * overlap, the longest matches ("Order intake" is not also "Order"), and of equally long ones the first of `sources`.
 *
 * Takes time in proportion to the text and the names together: an Aho-Corasick automaton over words gives the longest name
 * that ends at each word, and its suffix links give the next shorter one if that is taken.
 */
export function findNamedSources<Source extends { readonly name: string }>(
  text: string,
  sources: readonly Source[],
): Source[] {
  return [...new Set(locateNamedSources(text, sources).mentions.map(({ source }) => source))]
}

/** Where a text names a webhook source. */
export interface SourceMention<Source> {
  readonly source: Source
  readonly start: number
  readonly end: number
}

/** Finds every mention of the sources, in order, as `findNamedSources` does. The positions are those in `text`, the normalized text. */
export function locateNamedSources<Source extends { readonly name: string }>(
  fullText: string,
  sources: readonly Source[],
): { text: string; mentions: SourceMention<Source>[] } {
  const text = normalizeText(fullText)
  const names = new NameAutomaton(sources.map(({ name }) => tokenize(normalizeText(name).trim()).tokens))
  const { tokens, starts } = tokenize(text)
  // Candidates by length: a match of a longer name is decided before any of a shorter one.
  const candidates: Match[][] = []
  const isTaken = new Uint8Array(tokens.length)
  const addCandidate = (match: Match | undefined): void => {
    if (match) (candidates[match.name.length] ??= []).push(match)
  }
  for (const match of names.findLongest(tokens)) addCandidate(match)

  const matches: Match[] = []
  for (let length = candidates.length - 1; length > 0; length -= 1) {
    const inOrder = candidates[length]?.toSorted((a, b) => a.name.index - b.name.index || a.end - b.end) ?? []
    for (const { name, end } of inOrder) {
      // Earlier matches are at least as long, so one that overlaps this match has taken its first or its last word.
      if (isTaken[end - 1]) continue
      const start = end - name.tokenCount
      if (isTaken[start]) {
        let shorter = name.suffix
        while (shorter && isTaken[end - shorter.tokenCount]) shorter = shorter.suffix
        addCandidate(shorter && { name: shorter, end })
        continue
      }
      isTaken.fill(1, start, end)
      matches.push({ name, end })
    }
  }
  const mentions = matches
    .toSorted((a, b) => a.end - b.end)
    .flatMap(({ name, end }): SourceMention<Source>[] => {
      const source = sources[name.index]
      const start = starts[end - name.tokenCount] ?? 0
      return source ? [{ source, start, end: starts[end] ?? text.length }] : []
    })
  return { text, mentions }
}

/** The text between quotation marks on one line. An opening mark ends the text too, so that the search takes linear time. */
const QUOTED = /"([^"\n]*)"|[“„]([^“”„\n]*)[”“]|«([^«»\n]*)»|「([^「」\n]*)」/gu

const UNKNOWN_NAMES_MAX = 20

/**
 * Finds texts in quotation marks that name none of the webhook sources, each once, in order, at most 20. They may be names
 * of sources that do not exist. Texts that are longer than a name are left out.
 */
export function findUnknownNames(text: string, sources: readonly { readonly name: string }[]): string[] {
  const names = new NameAutomaton(sources.map(({ name }) => tokenize(normalizeText(name).trim()).tokens))
  const unknown = new Map<string, string>()
  for (const [, ...parts] of text.matchAll(QUOTED)) {
    const name = parts.find((part) => part !== undefined)?.trim() ?? ''
    if (
      name === '' ||
      name.length > 2 * WEBHOOK_SOURCE_NAME_MAX_LENGTH ||
      countCodePoints(name) > WEBHOOK_SOURCE_NAME_MAX_LENGTH
    )
      continue
    const { tokens } = tokenize(normalizeText(name).trim())
    const key = tokens.join('')
    if (!unknown.has(key) && names.findLongest(tokens).length === 0) unknown.set(key, name)
    if (unknown.size === UNKNOWN_NAMES_MAX) break
  }
  return [...unknown.values()]
}

interface Name {
  /** The index of the source. */
  readonly index: number
  /** The number of characters, which decides between names that overlap. */
  readonly length: number
  readonly tokenCount: number
  /** The longest other name that is a suffix of this one. */
  suffix: Name | undefined
}

interface Match {
  readonly name: Name
  /** The index of the token after the match. */
  readonly end: number
}

const ROOT = 0

/** Finds names in a text, word by word (Aho and Corasick, "Efficient string matching", 1975). */
class NameAutomaton {
  /** A number for every word that occurs in a name. */
  readonly #tokenIds = new Map<string, number>()
  readonly #transitions: Transitions
  /** By node: the longest other node that is a suffix of it. */
  readonly #suffixes: Int32Array
  /** By node: the longest name that is a suffix of it. */
  readonly #longest: (Name | undefined)[]

  constructor(names: readonly (readonly string[])[]) {
    const tokenIds = names.map((tokens) => Int32Array.from(tokens, (token) => this.#addToken(token)))
    const lengths = names.map((tokens) => tokens.reduce((sum, token) => sum + token.length, 0))
    const maxNodes = tokenIds.reduce((sum, { length }) => sum + length, 1)
    this.#transitions = new Transitions(maxNodes)
    this.#suffixes = new Int32Array(maxNodes)
    this.#longest = Array.from({ length: maxNodes })

    const nodes = new Int32Array(names.length)
    let nodeCount = 1
    const maxDepth = tokenIds.reduce((max, { length }) => Math.max(max, length), 0)
    // Depth by depth, because a node's suffixes are shallower than the node.
    for (let depth = 0; depth < maxDepth; depth += 1) {
      for (const [index, ids] of tokenIds.entries()) {
        const tokenId = ids[depth]
        if (tokenId === undefined) continue
        const parent = nodes[index] ?? ROOT
        let node = this.#transitions.get(parent, tokenId)
        if (node === ROOT) {
          node = nodeCount++
          const suffix = parent === ROOT ? ROOT : this.#next(this.#suffixes[parent] ?? ROOT, tokenId)
          this.#transitions.add(parent, tokenId, node)
          this.#suffixes[node] = suffix
          this.#longest[node] = this.#longest[suffix]
        }
        const isEnd = depth === ids.length - 1
        if (isEnd && this.#longest[node]?.tokenCount !== ids.length) {
          const suffix = this.#longest[node]
          this.#longest[node] = { index, length: lengths[index] ?? 0, tokenCount: ids.length, suffix }
        }
        nodes[index] = node
      }
    }
  }

  /** The longest name that ends at each token. */
  findLongest(tokens: readonly string[]): Match[] {
    const matches: Match[] = []
    let node = ROOT
    for (const [index, token] of tokens.entries()) {
      const tokenId = this.#tokenIds.get(token)
      node = tokenId === undefined ? ROOT : this.#next(node, tokenId)
      const name = this.#longest[node]
      if (name) matches.push({ name, end: index + 1 })
    }
    return matches
  }

  #addToken(token: string): number {
    const known = this.#tokenIds.get(token)
    if (known !== undefined) return known
    this.#tokenIds.set(token, this.#tokenIds.size)
    return this.#tokenIds.size - 1
  }

  /** The node for the longest suffix of the node's words followed by this word. */
  #next(from: number, tokenId: number): number {
    for (let node = from; ; node = this.#suffixes[node] ?? ROOT) {
      const child = this.#transitions.get(node, tokenId)
      if (child !== ROOT || node === ROOT) return child
    }
  }
}

/** The transitions from a node by a word to the next node. A hash table of numbers: a Map of 200,000 pairs takes 200 ms to fill, this 10 ms. */
class Transitions {
  readonly #mask: number
  readonly #parents: Int32Array
  readonly #tokenIds: Int32Array
  readonly #children: Int32Array

  constructor(maxEntries: number) {
    const size = 2 ** Math.ceil(Math.log2(2 * maxEntries))
    this.#mask = size - 1
    this.#parents = new Int32Array(size)
    this.#tokenIds = new Int32Array(size)
    this.#children = new Int32Array(size)
  }

  /** ROOT if there is none: no transition leads there. */
  get(parent: number, tokenId: number): number {
    return this.#children[this.#slotOf(parent, tokenId)] ?? ROOT
  }

  add(parent: number, tokenId: number, child: number): void {
    const slot = this.#slotOf(parent, tokenId)
    this.#parents[slot] = parent
    this.#tokenIds[slot] = tokenId
    this.#children[slot] = child
  }

  /** The pair's slot, or the free one where it would be: at most half of the slots are in use. */
  #slotOf(parent: number, tokenId: number): number {
    const hash = Math.imul(Math.imul(parent, 0x9e3779b1) ^ tokenId, 0x85ebca6b)
    let slot = (hash ^ (hash >>> 15)) & this.#mask
    while (this.#children[slot] !== ROOT && (this.#parents[slot] !== parent || this.#tokenIds[slot] !== tokenId)) {
      slot = (slot + 1) & this.#mask
    }
    return slot
  }
}

/** Makes compatible notations of a character equal. Normalizing 50,000 combining marks in a row takes 2 s: ICU sorts them by insertion. */
export function normalizeText(text: string): string {
  return text.replace(MANY_MARKS, '$1').normalize('NFC')
}

/** Splits the text into words, single other characters, and single spaces, in lower case, and gives where each starts. */
function tokenize(text: string): { tokens: string[]; starts: number[] } {
  const tokens: string[] = []
  const starts: number[] = []
  for (const match of text.matchAll(TOKEN)) {
    tokens.push(/^\s/u.test(match[0]) ? ' ' : match[0].toLowerCase())
    starts.push(match.index)
  }
  return { tokens, starts }
}
