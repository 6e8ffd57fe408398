import { crc32 } from 'node:zlib'
import * as turn from './turn.ts'

/** An event of a stream: one entry, from the event's type to its payload. */
type StreamEvent = Readonly<Record<string, object>>

/** Amazon Bedrock's Converse and ConverseStream. */
export const bedrockConverse: turn.ModelProtocol = {
  name: 'bedrock',
  path: /\/model\/(?<model>[^/]+)\/converse(-stream)?$/,
  isStreaming: (path) => path.endsWith('/converse-stream'),
  keyHeaders: ['authorization'],
  read({ body }) {
    const { system = [], messages, toolConfig } = body as unknown as Request
    return {
      messages: [{ role: 'system', content: system }, ...messages].map(({ role, content }) => ({
        role,
        parts: content.flatMap(readBlock),
      })),
      tools: (toolConfig?.tools ?? []).flatMap(({ toolSpec }) =>
        toolSpec ? [{ ...toolSpec, schema: toolSpec.inputSchema.json }] : [],
      ),
    }
  },
  whole: (speech) => ({
    output: { message: { role: 'assistant', content: turn.partsOf(speech).map((part) => toBlock(part).whole) } },
    stopReason: STOP_REASONS[turn.finishOf(speech)],
    usage: usage(speech),
    metrics: { latencyMs: 1 },
  }),
  stream: (speech): StreamEvent[] => [
    { messageStart: { role: 'assistant' } },
    ...turn.partsOf(speech).flatMap((part, contentBlockIndex): StreamEvent[] => {
      const { start, deltas } = toBlock(part)
      return [
        ...(start ? [{ contentBlockStart: { contentBlockIndex, start } }] : []),
        ...deltas.map((delta) => ({ contentBlockDelta: { contentBlockIndex, delta } })),
        { contentBlockStop: { contentBlockIndex } },
      ]
    }),
    { messageStop: { stopReason: STOP_REASONS[turn.finishOf(speech)] } },
    { metadata: { usage: usage(speech), metrics: { latencyMs: 1 } } },
  ],
  encoding: {
    type: 'application/vnd.amazon.eventstream',
    encode: (events) => Buffer.concat(events.flatMap((event) => Object.entries(event).map(toFrame))),
  },
  idHeader: 'x-amzn-requestid',
  error: (_status, message) => ({ message }),
  promptBlocked: () => ({ text: 'Sorry, I cannot answer that.', finishReason: 'content_filter' }),
}

interface Request {
  readonly system?: Block[]
  readonly messages: { role: string; content: Block[] }[]
  readonly toolConfig?: {
    tools: { toolSpec?: { name: string; description?: string; inputSchema: { json: unknown } } }[]
  }
}

interface Block {
  readonly text?: string
  readonly toolUse?: { toolUseId: string; name: string; input: Record<string, unknown> }
  readonly toolResult?: { toolUseId: string; content: { text?: string; json?: unknown }[] }
  readonly image?: { format: string; source: { bytes: string } }
  readonly document?: { format: string; source: { bytes: string } }
}

function readBlock({ text, toolUse, toolResult, image, document }: Block): turn.ReadPart[] {
  if (text !== undefined) return [{ text }]
  if (image) return [{ file: `image/${image.format};${image.source.bytes}` }]
  if (document) return [{ file: `application/${document.format};${document.source.bytes}` }]
  if (toolUse) return [{ call: { id: toolUse.toolUseId, name: toolUse.name, arguments: toolUse.input } }]
  if (!toolResult) return []
  const texts = toolResult.content.map((part) => part.text ?? JSON.stringify(part.json))
  return [{ result: { id: toolResult.toolUseId, text: texts.join('\n') } }]
}

const STOP_REASONS: Record<turn.ModelFinish, string> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'guardrail_intervened',
  refusal: 'content_filtered',
  pause: 'malformed_model_output',
  unknown: 'something_new',
}

/**
 * A block of an answer: whole, as a stream starts it (only calls of tools have a start), and the pieces that a stream
 * adds.
 */
function toBlock(part: turn.SpeechPart): { whole: object; start?: object; deltas: object[] } {
  const pieces = turn.splitIntoPieces(part.text)
  if (part.kind === 'text') return { whole: { text: part.text }, deltas: pieces.map((text) => ({ text })) }
  if (part.kind === 'reasoning') {
    const signature = 'c2lnbmF0dXJl'
    const deltas = [...pieces.map((text) => ({ text })), { signature }]
    return {
      whole: { reasoningContent: { reasoningText: { text: part.text, signature } } },
      deltas: deltas.map((reasoningContent) => ({ reasoningContent })),
    }
  }
  const toolUse = { toolUseId: part.id ?? turn.newId('tooluse_'), name: part.name }
  return {
    whole: { toolUse: { ...toolUse, input: part.value ?? part.text } },
    start: { toolUse },
    deltas: pieces.map((input) => ({ toolUse: { input } })),
  }
}

function usage(speech: turn.ModelSpeech) {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = turn.tokensOf(speech)
  return {
    inputTokens: inputTokens - cacheReadTokens - cacheWriteTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cacheReadInputTokens: cacheReadTokens,
    cacheWriteInputTokens: cacheWriteTokens,
  }
}

/**
 * A message of Amazon's event stream encoding: lengths, a checksum of them, headers, the payload, a checksum of all.
 */
function toFrame([eventType, payload]: [string, unknown]): Buffer {
  const headers = Buffer.concat(
    [
      [':event-type', eventType],
      [':content-type', 'application/json'],
      [':message-type', 'event'],
    ].map(([name = '', value = '']) => {
      const head = Buffer.from([name.length, ...Buffer.from(name), 7, 0, value.length])
      return Buffer.concat([head, Buffer.from(value)])
    }),
  )
  const body = Buffer.from(JSON.stringify(payload))
  const frame = Buffer.alloc(12 + headers.length + body.length + 4)
  frame.writeUInt32BE(frame.length, 0)
  frame.writeUInt32BE(headers.length, 4)
  frame.writeUInt32BE(crc32(frame.subarray(0, 8)), 8)
  headers.copy(frame, 12)
  body.copy(frame, 12 + headers.length)
  frame.writeUInt32BE(crc32(frame.subarray(0, frame.length - 4)), frame.length - 4)
  return frame
}
