import type { AgentWebhookSource } from './agent.ts'

/** Scripts that do not separate words by spaces, or that add particles to a name: any neighbour is a boundary there. */
const JOINED_SCRIPTS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u
const WORD_CHARACTER = /[\p{L}\p{M}\p{N}_]/u
const SPACE = 0x20

/**
 * The webhook sources whose names stand in the text, each once, in the order in which they first appear. Case and the
 * width of white space do not matter; a name counts only as whole words ("Orders" is not in "Reorders", but it is in
 * "the Orders-list"); where names overlap, the longest is meant ("Order intake" is not also "Order").
 */
export function findNamedSources<Source extends Pick<AgentWebhookSource, 'name'>>(
  text: string,
  sources: readonly Source[],
): Source[] {
  const haystack = fold(text)
  const taken = new Uint8Array(haystack.length)
  const found: { source: Source; at: number }[] = []
  const byLength = sources
    .map((source) => ({ source, needle: fold(source.name) }))
    .toSorted((a, b) => b.needle.length - a.needle.length)
  for (const { source, needle } of byLength) {
    // Names come longest first, so whatever overlaps a place covers one of its ends.
    const places = findWords(haystack, needle).filter((at) => !taken[at] && !taken[at + needle.length - 1])
    for (const at of places) taken.fill(1, at, at + needle.length)
    const [first] = places
    if (first !== undefined) found.push({ source, at: first })
  }
  return found.toSorted((a, b) => a.at - b.at).map(({ source }) => source)
}

function fold(text: string): string {
  return text.normalize('NFC').toLowerCase().replace(/\s+/gu, ' ').trim()
}

/** Every place, not overlapping each other, where the needle stands as whole words. */
function findWords(haystack: string, needle: string): number[] {
  const places: number[] = []
  if (needle === '') return places
  for (let at = haystack.indexOf(needle); at !== -1;) {
    const end = at + needle.length
    const isWhole =
      !joins(characterBefore(haystack, at), characterAt(haystack, at)) &&
      !joins(characterBefore(haystack, end), characterAt(haystack, end))
    if (isWhole) places.push(at)
    at = haystack.indexOf(needle, isWhole ? end : at + 1)
  }
  return places
}

function characterAt(text: string, at: number): string {
  return String.fromCodePoint(text.codePointAt(at) ?? SPACE)
}

function characterBefore(text: string, at: number): string {
  const isPair = /^[\uD800-\uDBFF][\uDC00-\uDFFF]$/.test(text.slice(Math.max(0, at - 2), at))
  return at === 0 ? ' ' : characterAt(text, isPair ? at - 2 : at - 1)
}

function joins(left: string, right: string): boolean {
  return [left, right].every((character) => WORD_CHARACTER.test(character) && !JOINED_SCRIPTS.test(character))
}
