import { reject } from './check-request.ts'
import * as turn from './turn.ts'

/** Anthropic's Messages API. */
export const anthropicMessages: turn.ModelProtocol = {
  name: 'anthropic',
  path: /\/messages$/,
  keyHeaders: ['x-api-key', 'authorization'],
  read({ body }) {
    const { system = [], messages, tools = [] } = body as unknown as Request
    return {
      messages: [{ role: 'system', content: system }, ...messages].map(({ role, content }) => ({
        role,
        parts: typeof content === 'string' ? [{ text: content }] : content.flatMap(readBlock),
      })),
      tools: tools.map(({ name, description, input_schema: schema }) => ({ name, description, schema })),
    }
  },
  whole: (speech, request) => ({
    ...head(request),
    content: turn.partsOf(speech).map((part) => toBlock(part).whole),
    ...ending(speech),
    usage: usage(speech),
  }),
  stream: (speech, request) => [
    { type: 'message_start', message: { ...head(request), content: [], usage: usage(speech) } },
    ...turn.partsOf(speech).flatMap((part, index) => {
      const { start, deltas } = toBlock(part)
      return [
        { type: 'content_block_start', index, content_block: start },
        ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ]
    }),
    { type: 'message_delta', delta: ending(speech), usage: usage(speech) },
    { type: 'message_stop' },
  ],
  error: (_status, message, code = 'api_error') => ({ type: 'error', error: { type: code, message } }),
  promptBlocked: () => ({ finishReason: 'refusal' }),
}

interface Request {
  readonly system?: string | Block[]
  readonly messages: { role: string; content: string | Block[] }[]
  readonly tools?: { name: string; description?: string; input_schema: unknown }[]
}

type Block =
  | { type: 'text'; text: string }
  | { type: 'thinking'; signature?: string }
  | { type: 'redacted_thinking'; data?: string }
  | { type: 'tool_use'; id: string; name: string; input: Record<string, unknown> }
  | { type: 'tool_result'; tool_use_id: string; content?: string | { text: string }[] }
  | { type: 'image' | 'document'; source: { media_type: string; data: string } }

function readBlock(block: Block): turn.ReadPart[] {
  if (block.type === 'text') return [{ text: block.text }]
  if (block.type === 'tool_use') return [{ call: { id: block.id, name: block.name, arguments: block.input } }]
  if (block.type === 'tool_result') {
    const { tool_use_id: id, content = '' } = block
    const text = typeof content === 'string' ? content : content.map((each) => each.text).join('\n')
    return [{ result: { id, text } }]
  }
  if (block.type === 'thinking') return block.signature ? [] : reject('thinking.signature: Field required')
  if (block.type === 'redacted_thinking') return block.data ? [] : reject('redacted_thinking.data: Field required')
  return [{ file: `${block.source.media_type};${block.source.data}` }]
}

const STOP_REASONS: Record<turn.ModelFinish, string> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'refusal',
  refusal: 'refusal',
  pause: 'pause_turn',
  unknown: 'something_new',
}

function head({ model }: turn.IncomingModelRequest) {
  return { id: turn.newId('msg_'), type: 'message', role: 'assistant', model }
}

function ending(speech: turn.ModelSpeech) {
  return { stop_reason: STOP_REASONS[turn.finishOf(speech)], stop_sequence: null }
}

/** A block of an answer: whole, as a stream starts it, and the pieces that a stream adds. */
function toBlock(part: turn.SpeechPart): { whole: object; start: object; deltas: object[] } {
  const pieces = turn.splitIntoPieces(part.text)
  if (part.kind === 'text') {
    const deltas = pieces.map((text) => ({ type: 'text_delta', text }))
    return { whole: { type: 'text', text: part.text }, start: { type: 'text', text: '' }, deltas }
  }
  if (part.kind === 'reasoning') {
    const signature = 'c2lnbmF0dXJl'
    const deltas = pieces.map((thinking) => ({ type: 'thinking_delta', thinking }))
    return {
      whole: { type: 'thinking', thinking: part.text, signature },
      start: { type: 'thinking', thinking: '', signature: '' },
      deltas: [...deltas, { type: 'signature_delta', signature }],
    }
  }
  const block = { type: 'tool_use', id: part.id ?? turn.newId('toolu_'), name: part.name }
  return {
    // Without streaming, the input is a JSON value: malformed arguments are sent as a string.
    whole: { ...block, input: part.value ?? part.text },
    start: { ...block, input: {} },
    deltas: pieces.map((partial_json) => ({ type: 'input_json_delta', partial_json })),
  }
}

function usage(speech: turn.ModelSpeech) {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = turn.tokensOf(speech)
  return {
    input_tokens: inputTokens - cacheReadTokens - cacheWriteTokens,
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cacheReadTokens,
    output_tokens: outputTokens,
    ...(reasoningTokens > 0 ? { output_tokens_details: { thinking_tokens: reasoningTokens } } : {}),
  }
}
