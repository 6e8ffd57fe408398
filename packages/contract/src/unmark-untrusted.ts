const OPENING = /<(?<tag>data-[0-9a-f]{16}) of="(?<label>[^"\n]*)">\n/g
const CLOSING = /\n<\/(data-[0-9a-f]{16})>/g

/** The texts that have marked texts in them: the answers of endpoints to earlier runs. */
const NESTING = new Set(['session so far', 'earlier runs'])

/**
 * Replaces the tags of `markUntrusted` by what is in them, for people to read. Other tags are part of a text. Without
 * node:crypto, which the page does not have. Takes time in proportion to the text.
 */
export function unmarkUntrusted(text: string, nesting: ReadonlySet<string> = NESTING): string {
  const lastEnds = new Map(Array.from(text.matchAll(CLOSING), ({ 1: tag, index }) => [tag, index]))
  let plain = ''
  let from = 0
  for (const { 0: opening, index, groups } of text.matchAll(OPENING)) {
    const { tag, label = '' } = groups!
    const start = index + opening.length
    if (index < from || (lastEnds.get(tag) ?? 0) < start) continue
    const closing = `\n</${tag}>`
    const end = text.indexOf(closing, start)
    const inner = text.slice(start, end)
    plain += text.slice(from, index) + (nesting.has(label) ? unmarkUntrusted(inner, new Set()) : inner)
    from = end + closing.length
  }
  return plain + text.slice(from)
}
