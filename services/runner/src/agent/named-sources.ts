import type { AgentWebhookSource } from './agent.ts'

/** Scripts without spaces between words, or with particles attached to names: any neighbour is a word boundary there. */
const UNSPACED_SCRIPTS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u
const WORD_CHARACTER = /[\p{L}\p{M}\p{N}_]/u
const SPACE = 0x20

/**
 * Finds the webhook sources that the text names, each once, in order of first appearance. Ignores case and the amount of
 * white space. A name matches whole words only ("Orders" is not in "Reorders", but is in "the Orders-list"). Where names
 * overlap, the longest matches ("Order intake" is not also "Order").
 */
export function findNamedSources<Source extends Pick<AgentWebhookSource, 'name'>>(
  text: string,
  sources: readonly Source[],
): Source[] {
  const haystack = normalize(text)
  const isTaken = new Uint8Array(haystack.length)
  const found: { source: Source; index: number }[] = []
  const longestFirst = sources
    .map((source) => ({ source, needle: normalize(source.name) }))
    .toSorted((a, b) => b.needle.length - a.needle.length)
  for (const { source, needle } of longestFirst) {
    // Longer names come first, so a match that overlaps one of theirs has its first or last character taken.
    const matches = findWords(haystack, needle).filter(
      (index) => !isTaken[index] && !isTaken[index + needle.length - 1],
    )
    for (const index of matches) isTaken.fill(1, index, index + needle.length)
    const [first] = matches
    if (first !== undefined) found.push({ source, index: first })
  }
  return found.toSorted((a, b) => a.index - b.index).map(({ source }) => source)
}

function normalize(text: string): string {
  return text.normalize('NFC').toLowerCase().replace(/\s+/gu, ' ').trim()
}

/** The start of every match of the needle as whole words. Matches do not overlap. */
function findWords(haystack: string, needle: string): number[] {
  const matches: number[] = []
  if (needle === '') return matches
  for (let index = haystack.indexOf(needle); index !== -1;) {
    const end = index + needle.length
    const isWhole = isBoundary(haystack, index) && isBoundary(haystack, end)
    if (isWhole) matches.push(index)
    index = haystack.indexOf(needle, isWhole ? end : index + 1)
  }
  return matches
}

/** Whether a word can begin or end between the characters before and after the index. */
function isBoundary(text: string, index: number): boolean {
  return [characterBefore(text, index), characterAt(text, index)].some(
    (character) => !WORD_CHARACTER.test(character) || UNSPACED_SCRIPTS.test(character),
  )
}

function characterAt(text: string, index: number): string {
  return String.fromCodePoint(text.codePointAt(index) ?? SPACE)
}

function characterBefore(text: string, index: number): string {
  const isSurrogatePair = /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(text.slice(Math.max(0, index - 2), index))
  return index === 0 ? ' ' : characterAt(text, isSurrogatePair ? index - 2 : index - 1)
}
