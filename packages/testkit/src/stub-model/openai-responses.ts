import { createHash } from 'node:crypto'
import { reject } from './check-request.ts'
import { openAiChat } from './openai-chat.ts'
import * as turn from './turn.ts'

/** OpenAI's Responses API. */
export const openAiResponses: turn.ModelProtocol = {
  name: 'openai',
  path: /\/responses$/,
  allowsBlankTexts: true,
  read({ body, headers }) {
    const { input, tools = [] } = body as unknown as Request
    return {
      messages: input.map((item) => readItem(item, headers)),
      tools: tools.map(({ name, description, parameters: schema }) => ({ name, description, schema })),
    }
  },
  whole: (speech, request) => toResponse(speech, request, toItems(speech, request)),
  stream(speech, request) {
    const items = toItems(speech, request)
    const response = toResponse(speech, request, items)
    const started = { ...response, status: 'in_progress', output: [], usage: null, incomplete_details: null }
    const events = [
      { type: 'response.created', response: started },
      ...items.flatMap(toEvents),
      { type: `response.${response.status}`, response },
    ]
    return events.map((event, sequence_number) => ({ ...event, sequence_number }))
  },
  error: openAiChat.error,
  promptBlocked: openAiChat.promptBlocked,
}

interface Request {
  readonly input: InputItem[]
  readonly tools?: { name: string; description?: string; parameters: unknown }[]
}

type InputItem =
  | { type?: undefined; role: string; content: string | Content[] }
  | { type: 'function_call'; call_id: string; name: string; arguments: string }
  | { type: 'function_call_output'; call_id: string; output: string }
  | { type: 'reasoning'; encrypted_content?: string }

interface Content {
  readonly text?: string
  readonly image_url?: string
  readonly file_data?: string
}

/** Reasoning is encrypted for the account that asked. */
function encryptedFor({ authorization = '' }: turn.IncomingModelRequest['headers']): string {
  return createHash('sha256').update(authorization).digest('base64')
}

function readItem(
  item: InputItem,
  headers: turn.IncomingModelRequest['headers'],
): turn.ReadRequest['messages'][number] {
  if (item.type === 'function_call') {
    return { role: 'assistant', parts: [turn.readCall(item.call_id, item.name, item.arguments)] }
  }
  if (item.type === 'function_call_output') {
    return { role: 'user', parts: [{ result: { id: item.call_id, text: item.output } }] }
  }
  if (item.type === 'reasoning') {
    if (!item.encrypted_content) reject('Items are not persisted when `store` is set to false.')
    if (item.encrypted_content !== encryptedFor(headers)) {
      reject('The encrypted content could not be verified: organization_id did not match the target organization.')
    }
    return { role: 'assistant', parts: [] }
  }
  if (item.type !== undefined) reject('Item not found.')
  const { role, content } = item
  const contents: Content[] = typeof content === 'string' ? [{ text: content }] : content
  const parts = contents.map(({ text = '', image_url: image, file_data: file }) =>
    image || file ? turn.readDataUrl(image ?? file) : { text },
  )
  return { role, parts }
}

interface OutputItem {
  readonly type: string
  readonly id: string
  readonly content?: [{ type: string; text?: string; refusal?: string }]
  readonly arguments?: string
}

/** The events of one item of the output. */
function toEvents(item: OutputItem, output_index: number): { type: string; [key: string]: unknown }[] {
  const common = { item_id: item.id, output_index }
  const [part] = item.content ?? []
  const [kind, text = ''] =
    part?.type === 'refusal' ? ['response.refusal', part.refusal] : ['response.output_text', part?.text]
  const isCall = item.arguments !== undefined
  const type = isCall ? 'response.function_call_arguments' : kind
  const deltas = isCall || part ? turn.splitIntoPieces(item.arguments ?? text) : []
  return [
    { type: 'response.output_item.added', output_index, item: { ...item, ...(isCall ? { arguments: '' } : {}) } },
    ...deltas.map((delta) => ({ type: `${type}.delta`, ...common, ...(isCall ? {} : { content_index: 0 }), delta })),
    { type: 'response.output_item.done', output_index, item },
  ]
}

function toItems(speech: turn.ModelSpeech, { headers }: turn.IncomingModelRequest): OutputItem[] {
  return turn.partsOf(speech).map((part) => {
    if (part.kind === 'reasoning') {
      const summary = [{ type: 'summary_text', text: part.text }]
      return { type: 'reasoning', id: turn.newId('rs_'), summary, encrypted_content: encryptedFor(headers) }
    }
    if (part.kind === 'text') {
      const content =
        turn.finishOf(speech) === 'refusal'
          ? { type: 'refusal', refusal: part.text }
          : { type: 'output_text', text: part.text, annotations: [], logprobs: [] }
      return { type: 'message', id: turn.newId('msg_'), status: 'completed', role: 'assistant', content: [content] }
    }
    return {
      type: 'function_call',
      id: turn.newId('fc_'),
      call_id: part.id ?? turn.newId('call_'),
      name: part.name,
      arguments: part.text,
      status: 'completed',
    }
  })
}

const INCOMPLETE: Readonly<Record<string, string>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
  pause: 'paused',
  unknown: 'something_new',
}

function toResponse(speech: turn.ModelSpeech, { model }: turn.IncomingModelRequest, output: OutputItem[]) {
  const reason = INCOMPLETE[turn.finishOf(speech)]
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = turn.tokensOf(speech)
  return {
    id: turn.newId('resp_'),
    object: 'response',
    created_at: Math.floor(Date.now() / 1000),
    status: reason === undefined ? 'completed' : 'incomplete',
    error: null,
    incomplete_details: reason === undefined ? null : { reason },
    model,
    output,
    usage: {
      input_tokens: inputTokens,
      input_tokens_details: { cached_tokens: cacheReadTokens, cache_write_tokens: cacheWriteTokens },
      output_tokens: outputTokens,
      output_tokens_details: { reasoning_tokens: reasoningTokens },
      total_tokens: inputTokens + outputTokens,
    },
  }
}
