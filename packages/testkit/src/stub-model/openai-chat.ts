import * as turn from './turn.ts'

/** OpenAI's Chat Completions API, which compatible servers and Azure offer too. */
export const openAiChat: turn.ModelProtocol = {
  name: 'openai-compatible',
  path: /\/chat\/completions$/,
  read({ body }) {
    const { messages, tools = [] } = body as unknown as Request
    return {
      messages: messages.map((message) => ({
        role: message.role === 'tool' ? 'user' : message.role,
        parts: readMessage(message),
      })),
      tools: tools.map(({ function: { name, description, parameters: schema } }) => ({ name, description, schema })),
    }
  },
  whole(speech, request) {
    const { text = null, reasoning } = speech
    const calls = turn.partsOf(speech).flatMap((part) => (part.kind === 'call' ? [part] : []))
    const message = {
      role: 'assistant',
      content: isRefusal(speech) ? null : text,
      refusal: isRefusal(speech) ? (text ?? 'No.') : null,
      reasoning_content: reasoning,
      tool_calls: speech.toolCalls && calls.map((call) => toToolCall(call, call.text)),
    }
    const choice = { index: 0, message, logprobs: null, finish_reason: FINISH_REASONS[turn.finishOf(speech)] }
    return { ...head('chat.completion', request), choices: [choice], usage: usage(speech) }
  },
  stream(speech, request) {
    const common = head('chat.completion.chunk', request)
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      ...common,
      choices: [{ index: 0, delta, finish_reason }],
    })
    const parts = turn.partsOf(speech)
    const firstCall = parts.findIndex(({ kind }) => kind === 'call')
    const chunks = parts.flatMap((part, position) => {
      const pieces = turn.splitIntoPieces(part.text)
      if (part.kind === 'call') {
        const index = position - firstCall
        return [
          chunk({ tool_calls: [{ index, ...toToolCall(part, '') }] }),
          ...pieces.map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] })),
        ]
      }
      const field = part.kind === 'reasoning' ? 'reasoning_content' : isRefusal(speech) ? 'refusal' : 'content'
      return pieces.map((piece) => chunk({ [field]: piece }))
    })
    return [
      chunk({ role: 'assistant', content: speech.text === undefined ? null : '' }),
      ...chunks,
      chunk({}, FINISH_REASONS[turn.finishOf(speech)]),
      { ...common, choices: [], usage: usage(speech) },
    ]
  },
  encoding: { type: 'text/event-stream', encode: (events) => `${turn.toServerSentEvents(events)}data: [DONE]\n\n` },
  error: (_status, message, code = 'error') => ({ error: { message, type: code, param: null, code } }),
  // Azure's content filter.
  promptBlocked: () => ({
    failure: 'status',
    status: 400,
    message: 'The response was filtered.',
    code: 'content_filter',
  }),
}

interface Request {
  readonly messages: Message[]
  readonly tools?: { function: { name: string; description?: string; parameters: unknown } }[]
}

interface Message {
  readonly role: string
  readonly content?: string | Content[] | null
  readonly tool_call_id?: string
  readonly tool_calls?: { id: string; function: { name: string; arguments: string } }[]
}

interface Content {
  readonly text?: string
  readonly image_url?: { url: string }
  readonly file?: { file_data: string }
}

function readMessage({ role, content, tool_call_id: id = '', tool_calls: calls = [] }: Message): turn.ReadPart[] {
  if (role === 'tool') return [{ result: { id, text: content as string } }]
  const contents =
    typeof content === 'string' ? (content === '' && calls.length > 0 ? [] : [{ text: content }]) : content
  return [
    ...(contents ?? []).map(({ text = '', image_url: image, file }: Content) =>
      image || file ? turn.readDataUrl(image?.url ?? file?.file_data) : { text },
    ),
    ...calls.map((call) => turn.readCall(call.id, call.function.name, call.function.arguments)),
  ]
}

const FINISH_REASONS: Record<turn.ModelFinish, string> = {
  stop: 'stop',
  tool_calls: 'tool_calls',
  length: 'length',
  content_filter: 'content_filter',
  // OpenAI ends a refusal like any other answer.
  refusal: 'stop',
  pause: 'paused',
  unknown: 'something_new',
}

function isRefusal(speech: turn.ModelSpeech): boolean {
  return turn.finishOf(speech) === 'refusal'
}

function toToolCall({ id = turn.newId('call_'), name }: { id?: string; name: string }, text: string) {
  return { id, type: 'function', function: { name, arguments: text } }
}

function head(object: string, { model }: turn.IncomingModelRequest) {
  return { id: turn.newId('chatcmpl-'), object, created: Math.floor(Date.now() / 1000), model }
}

function usage(speech: turn.ModelSpeech) {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = turn.tokensOf(speech)
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cacheReadTokens, cache_write_tokens: cacheWriteTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  }
}
