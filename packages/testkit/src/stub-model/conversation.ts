import { reject } from './check.ts'
import type { ModelMessage } from './turn.ts'

/** What an API demands of the order of messages. */
export interface ConversationRules {
  readonly startsWithUser?: boolean
  readonly alternates?: boolean
  readonly endsWithUser?: boolean
  /** What joins a result to its call: its id, or for APIs without ids the name of the function. */
  readonly resultsBy?: 'id' | 'name'
}

export function newMessage(role: unknown, path: string): ModelMessage {
  if (role !== 'user' && role !== 'assistant') reject(`${path}.role: must be 'user' or 'assistant'`)
  return { role, text: '', calls: [], results: [] }
}

export function addText(message: ModelMessage, text: string): void {
  message.text = message.text === '' ? text : `${message.text}\n${text}`
}

/** How the bytes of the media types that the APIs take begin in base64. */
const MEDIA: Readonly<Record<string, string>> = {
  'application/pdf': 'JVBERi',
  'image/png': 'iVBORw0KGgo',
  'image/jpeg': '/9j/',
  'image/gif': 'R0lGOD',
  'image/webp': 'UklGR',
}

/** Adds a PDF or an image of the user. */
export function addFile(message: ModelMessage, mediaType: string, base64: unknown, path: string): void {
  const begin = MEDIA[mediaType]
  if (begin === undefined || message.role !== 'user') reject(`${path}: the media type ${mediaType} is not supported`)
  if (typeof base64 !== 'string' || !base64.startsWith(begin)) reject(`${path}: the data is no ${mediaType}`)
  message.files = [...(message.files ?? []), `${mediaType};${base64}`]
}

/** Adds what a data URL has. */
export function addDataUrl(message: ModelMessage, url: unknown, path: string): void {
  const [, mediaType = '', base64] = /^data:([a-z/]+);base64,(.+)$/.exec(String(url)) ?? []
  addFile(message, mediaType, base64, path)
}

/** Checks roles, and that the message after one with calls has exactly their results. */
export function checkMessages(messages: ModelMessage[], rules: ConversationRules = {}): ModelMessage[] {
  const keyOf = (call: ModelMessage['calls'][number]) => call[rules.resultsBy ?? 'id']
  if (rules.startsWithUser && messages[0]?.role !== 'user') reject('messages: must start with a user message')
  for (const [index, { role, calls, results }] of messages.entries()) {
    const before = messages[index - 1]
    if (rules.alternates && before?.role === role) reject(`messages.${index}: roles must alternate`)
    if (role === 'user' && calls.length > 0) reject(`messages.${index}: only the assistant calls tools`)
    if (role === 'assistant' && results.length > 0) reject(`messages.${index}: only the user sends results of tools`)
    if (new Set(calls.map(({ id }) => id)).size < calls.length) reject(`messages.${index}: ids of calls must be unique`)
    const expected = (before?.calls ?? []).map(keyOf).toSorted()
    const found = results.map(({ id }) => id).toSorted()
    if (expected.join('\n') !== found.join('\n')) {
      reject(
        `messages.${index}: must have the results of the calls [${expected.join()}], but has those of [${found.join()}]`,
      )
    }
  }
  const last = messages.at(-1)
  if (last && last.calls.length > 0) reject(`messages: no results of the calls [${last.calls.map(keyOf).join()}]`)
  if (rules.endsWithUser && last?.role !== 'user') reject('messages: must end with a user message')
  return messages
}
