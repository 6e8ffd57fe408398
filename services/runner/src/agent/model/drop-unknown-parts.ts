import { parseJson } from '@workflow-service/contract'
import type { ModelProvider } from '../agent-settings.ts'

type Json = Readonly<Record<string, unknown>>

/**
 * Where a whole answer has its parts, and the types of those that an agent reads: the AI SDK refuses an answer with a
 * part of a type that it does not know, so that a provider's new one would fail every run.
 */
const PARTS: { readonly [Of in ModelProvider]?: readonly [field: string, types: ReadonlySet<unknown>] } = {
  anthropic: ['content', new Set(['text', 'thinking', 'redacted_thinking', 'tool_use', 'compaction'])],
  openai: ['output', new Set(['message', 'reasoning', 'function_call'])],
}

/** The events of Anthropic's streams, and the pieces of a part. OpenAI's package ignores unknown ones. */
const EVENTS = new Set<unknown>([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'ping',
  'error',
])
const DELTAS = new Set<unknown>([
  'text_delta',
  'thinking_delta',
  'signature_delta',
  'input_json_delta',
  'compaction_delta',
])

const DATA = /^data:.*\n?/gm

interface StreamEvent {
  readonly type?: unknown
  readonly index?: unknown
  readonly content_block?: Json
  readonly delta?: Json
}

/**
 * Makes the transform that leaves the parts of unknown types out of an answer: of JSON in one chunk, or of a stream of
 * events in chunks of whole lines. Undefined if the provider's package leaves them out itself.
 */
export function dropUnknownParts(
  provider: ModelProvider,
  isStream: boolean,
): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> | undefined {
  const parts = PARTS[provider]
  if (!parts || (isStream && provider !== 'anthropic')) return undefined
  const drop = isStream ? eventDropper(parts[1]) : (text: string) => dropParts(text, ...parts)
  // A chunk of a stream may end within a character.
  const encoding = isStream ? 'latin1' : 'utf8'
  return new TransformStream({
    transform(chunk, controller) {
      const text = Buffer.from(chunk).toString(encoding)
      const kept = drop(text)
      controller.enqueue(kept === text ? chunk : Buffer.from(kept, encoding))
    },
  })
}

function dropParts(text: string, field: string, types: ReadonlySet<unknown>): string {
  const answer = parseJson(text) as Json | null | undefined
  const all = answer?.[field]
  const isKnown = (part: Json | null): boolean => types.has(part?.['type'])
  if (!Array.isArray(all) || all.every(isKnown)) return text
  return JSON.stringify({ ...answer, [field]: all.filter(isKnown) })
}

function eventDropper(types: ReadonlySet<unknown>): (text: string) => string {
  const dropped = new Set<unknown>()
  const isKnown = ({ type, index, content_block: block, delta }: StreamEvent): boolean => {
    // An error of what is on the way has none.
    if (typeof type !== 'string') return true
    if (type === 'content_block_start' && !types.has(block?.['type'])) dropped.add(index)
    if (type === 'content_block_delta' && !DELTAS.has(delta?.['type'])) return false
    return EVENTS.has(type) && !(type.startsWith('content_block_') && dropped.has(index))
  }
  return (text) =>
    text.replace(DATA, (line) => {
      const event = parseJson(line.slice('data:'.length)) as StreamEvent | null | undefined
      return event && !isKnown(event) ? '' : line
    })
}
