import type { AgentWebhookSource } from './agent.ts'

/** Scripts that do not separate words by spaces, or that add particles to a name: any neighbour is a boundary there. */
const JOINED_SCRIPTS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}]/u
const WORD_CHARACTER = /[\p{L}\p{M}\p{N}_]/u

/**
 * The webhook sources whose names stand in the text, each once, in the order in which they first appear. Case and the
 * width of white space do not matter; a name counts only as whole words ("Orders" is not in "Reorders", but it is in
 * "the Orders-list"); where names overlap, the longest is meant ("Order intake" is not also "Order").
 */
export function findNamedSources<Source extends Pick<AgentWebhookSource, 'name'>>(
  text: string,
  sources: readonly Source[],
): Source[] {
  const haystack = Array.from(fold(text))
  const isTaken = haystack.map(() => false)
  const found: { source: Source; at: number }[] = []
  const byLength = sources
    .map((source) => ({ source, needle: Array.from(fold(source.name)) }))
    .toSorted((a, b) => b.needle.length - a.needle.length)
  for (const { source, needle } of byLength) {
    const places = findWords(haystack, needle).filter((place) => !isTaken[place] && !isTaken[place + needle.length - 1])
    for (const place of places) isTaken.fill(true, place, place + needle.length)
    const [first] = places
    if (first !== undefined) found.push({ source, at: first })
  }
  return found.toSorted((a, b) => a.at - b.at).map(({ source }) => source)
}

function fold(text: string): string {
  return text.normalize('NFC').toLowerCase().replace(/\s+/gu, ' ').trim()
}

/** Every place, not overlapping each other, where the needle stands as whole words. */
function findWords(haystack: readonly string[], needle: readonly string[]): number[] {
  const places: number[] = []
  if (needle.length === 0) return places
  for (let at = 0; at + needle.length <= haystack.length; at += 1) {
    if (!needle.every((character, index) => haystack[at + index] === character)) continue
    const isWhole =
      !joins(haystack[at - 1], needle[0]) && !joins(needle[needle.length - 1], haystack[at + needle.length])
    if (!isWhole) continue
    places.push(at)
    at += needle.length - 1
  }
  return places
}

function joins(left: string | undefined, right: string | undefined): boolean {
  return [left, right].every(
    (character) => character !== undefined && WORD_CHARACTER.test(character) && !JOINED_SCRIPTS.test(character),
  )
}
