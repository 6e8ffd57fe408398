import { createHash } from 'node:crypto'

/**
 * Wraps text from outside (a context, a file, an endpoint's answer) in a tag, so that a model can distinguish it from
 * instructions. The tag is the same for all texts of one kind in a session, so that prompts of the session begin alike,
 * which providers cache. Only for a text that contains its tag, the tag depends on the text: no text can contain its
 * own closing tag, and the text itself needs no escaping.
 */
export function markUntrusted(label: string, text: string, sessionId: string): string {
  let tag = toTag(`${sessionId}\0${label}`)
  while (text.includes(tag)) tag = toTag(`${tag}\0${text}`)
  return `<${tag} of="${label}">\n${text}\n</${tag}>`
}

function toTag(text: string): string {
  return `data-${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
}
