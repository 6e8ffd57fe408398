import { createHash } from 'node:crypto'

/**
 * Wraps text from outside (a context, a file, an endpoint's answer) in a tag, so that a model can distinguish it from
 * instructions. The tag is the same for all texts of one kind in a session, so that prompts of the session begin alike,
 * which providers cache. Only for a text that contains its tag, the tag depends on the text: no text can contain its
 * own closing tag, and the text itself needs no escaping.
 */
export function markUntrusted(label: string, text: string, sessionId: string): string {
  return inTag('data', `${sessionId}\0${label}`, label, text)
}

/**
 * Wraps the text in a tag that it does not contain: `<PREFIX-… of="LABEL">`. The same seed gives the same tag, unless
 * the text contains it.
 */
export function inTag(prefix: string, seed: string, label: string, text: string): string {
  const toTag = (hashed: string) => `${prefix}-${createHash('sha256').update(hashed).digest('hex').slice(0, 16)}`
  let tag = toTag(seed)
  while (text.includes(tag)) tag = toTag(`${tag}\0${text}`)
  return `<${tag} of="${label}">\n${text}\n</${tag}>`
}
