import {
  checkToolSchema,
  checkUnique,
  type Fields,
  readFields,
  readInteger,
  readList,
  readObject,
  readString,
  reject,
  type SchemaRules,
} from './check.ts'
import {
  argumentsText,
  argumentsValue,
  finishOf,
  type IncomingModelRequest,
  type ModelFinish,
  type ModelMessage,
  type ModelProtocol,
  type ModelSpeech,
  type ModelToolCall,
  newId,
  splitIntoPieces,
  toServerSentEvents,
  tokensOf,
} from './turn.ts'

/** Anthropic's Messages API. */
export const anthropicMessages: ModelProtocol = {
  name: 'anthropic',
  path: /\/messages$/,
  isStreaming: (_path, body) => body['stream'] === true,
  read: readRequest,
  whole(speech, request) {
    const content: object[] = []
    if (speech.reasoning !== undefined) content.push(thinking(speech.reasoning))
    if (speech.text !== undefined) content.push({ type: 'text', text: speech.text })
    // Without streaming, the input is a JSON value: malformed arguments are sent as a string.
    for (const call of speech.toolCalls ?? [])
      content.push({ ...toolUse(call), input: argumentsValue(call) ?? call.arguments })
    return { ...head(request), content, ...ending(speech), usage: usage(speech) }
  },
  stream(speech, request) {
    const start = { ...head(request), content: [], stop_reason: null, stop_sequence: null }
    const tokens = usage(speech)
    const events: { type: string; [key: string]: unknown }[] = [
      { type: 'message_start', message: { ...start, usage: { ...tokens, output_tokens: 1 } } },
      { type: 'ping' },
    ]
    const block = (content_block: object, deltas: object[]) => {
      const index = events.filter(({ type }) => type === 'content_block_start').length
      events.push({ type: 'content_block_start', index, content_block })
      events.push(...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })))
      events.push({ type: 'content_block_stop', index })
    }
    if (speech.reasoning !== undefined) {
      const { signature } = thinking('')
      const deltas = splitIntoPieces(speech.reasoning).map((piece) => ({ type: 'thinking_delta', thinking: piece }))
      block({ type: 'thinking', thinking: '', signature: '' }, [...deltas, { type: 'signature_delta', signature }])
    }
    if (speech.text !== undefined) {
      const deltas = splitIntoPieces(speech.text).map((text) => ({ type: 'text_delta', text }))
      block({ type: 'text', text: '' }, deltas)
    }
    for (const call of speech.toolCalls ?? []) {
      const parts = splitIntoPieces(argumentsText(call))
      const deltas = parts.map((partial_json) => ({ type: 'input_json_delta', partial_json }))
      block({ ...toolUse(call), input: {} }, deltas)
    }
    events.push({ type: 'message_delta', delta: ending(speech), usage: { output_tokens: tokens.output_tokens } })
    events.push({ type: 'message_stop' })
    return toServerSentEvents(events)
  },
  streamType: 'text/event-stream',
  error: (status, text, code) => ({
    body: { type: 'error', error: { type: code ?? errorType(status), message: text }, request_id: newId('req_') },
  }),
  promptBlocked(request) {
    const speech: ModelSpeech = { finishReason: 'refusal' }
    const body = request.isStreaming
      ? anthropicMessages.stream(speech, request)
      : JSON.stringify(anthropicMessages.whole(speech, request))
    return { status: 200, body }
  },
}

const STOP_REASONS: Record<ModelFinish, string> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'refusal',
  refusal: 'refusal',
  pause: 'pause_turn',
  unknown: 'something_new',
}

function head({ model }: IncomingModelRequest) {
  return { id: newId('msg_'), type: 'message', role: 'assistant', model }
}

function thinking(text: string) {
  return { type: 'thinking', thinking: text, signature: 'c2lnbmF0dXJl' }
}

function toolUse(call: ModelToolCall) {
  return { type: 'tool_use', id: call.id ?? newId('toolu_'), name: call.name }
}

function ending(speech: ModelSpeech) {
  return { stop_reason: STOP_REASONS[finishOf(speech)], stop_sequence: null }
}

function usage(speech: ModelSpeech) {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = tokensOf(speech)
  return {
    input_tokens: inputTokens - cacheReadTokens - cacheWriteTokens,
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cacheReadTokens,
    output_tokens: outputTokens,
    ...(reasoningTokens > 0 ? { output_tokens_details: { thinking_tokens: reasoningTokens } } : {}),
  }
}

function errorType(status: number): string {
  const types: Readonly<Record<number, string>> = {
    401: 'authentication_error',
    403: 'permission_error',
    404: 'not_found_error',
    413: 'request_too_large',
    429: 'rate_limit_error',
    529: 'overloaded_error',
  }
  return types[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}

const REQUEST =
  'model max_tokens messages system? tools? tool_choice? temperature? top_p? top_k? stop_sequences? stream? metadata? thinking? ' +
  'service_tier? container? mcp_servers? context_management? output_config? cache_control? inference_geo? speed?'
const MAX_CACHE_CONTROLS = 4

export const ANTHROPIC_SCHEMA_RULES: SchemaRules = { propertyName: /^[a-zA-Z0-9_.-]{1,64}$/, allowsTypeLists: true }

function readRequest({ body, headers }: IncomingModelRequest) {
  if (!headers['anthropic-version']) reject('anthropic-version: header is required')
  if (!headers['x-api-key'] && !headers.authorization) reject('x-api-key header is required', 401)
  const request = readFields(body, 'request', REQUEST)
  readString(request['model'], 'model', { pattern: /./ })
  readInteger(request['max_tokens'], 'max_tokens', 1)
  const { temperature } = request
  if (temperature !== undefined && !(Number(temperature) >= 0 && Number(temperature) <= 1)) {
    reject('temperature: range: 0..1')
  }
  const cacheControls = JSON.stringify(body).split('"cache_control":{').length - 1
  if (cacheControls > MAX_CACHE_CONTROLS) {
    reject(`A maximum of 4 blocks with cache_control may be provided. Found ${cacheControls}.`)
  }
  const tools = (request['tools'] === undefined ? [] : readList(request['tools'], 'tools', { min: 0 })).map(
    (tool, index) => {
      const path = `tools.${index}.custom`
      const definition = readFields(
        tool,
        path,
        'type? name description? input_schema cache_control? strict? eager_input_streaming?',
      )
      return {
        name: readString(definition['name'], `${path}.name`, { pattern: /^[a-zA-Z0-9_-]{1,128}$/ }),
        description: readString(definition['description'] ?? '', `${path}.description`),
        schema: checkToolSchema(definition['input_schema'], `${path}.input_schema`, ANTHROPIC_SCHEMA_RULES),
      }
    },
  )
  checkUnique(
    tools.map(({ name }) => name),
    () => 'tools: Tool names must be unique.',
  )
  if (request['tool_choice'] !== undefined && tools.length === 0)
    reject('tool_choice: may only be specified while providing tools')
  const { system } = request
  const instructions = system === undefined ? '' : readTexts(system, 'system')
  return { instructions, messages: readMessages(request['messages']), tools }
}

function readTexts(value: unknown, path: string): string {
  if (typeof value === 'string') return checkText(value)
  return readList(value, path)
    .map((block, index) => {
      const { type, text } = readFields(block, `${path}.${index}`, 'type text cache_control? citations?')
      if (type !== 'text') reject(`${path}.${index}: Input tag '${String(type)}' found does not match 'text'`)
      return checkText(readString(text, `${path}.${index}.text`))
    })
    .join('\n')
}

function checkText(text: string): string {
  if (text === '') reject('messages: text content blocks must be non-empty')
  if (text.trim() === '') reject('messages: text content blocks must contain non-whitespace text')
  return text
}

function readMessages(value: unknown): ModelMessage[] {
  const messages: ModelMessage[] = []
  const ids = new Set<string>()
  let unanswered: string[] = []
  for (const [index, item] of readList(value, 'messages').entries()) {
    const { role, content } = readFields(item, `messages.${index}`, 'role content')
    if (role !== 'user' && role !== 'assistant') reject(`messages.${index}.role: Input should be 'user' or 'assistant'`)
    if (index === 0 && role !== 'user') reject('messages: first message must use the "user" role')
    const message: ModelMessage = { role, text: '', calls: [], results: [] }
    const blocks =
      typeof content === 'string' ? [{ type: 'text', text: content }] : readList(content, `messages.${index}.content`)
    const texts: string[] = []
    for (const [at, block] of blocks.entries()) {
      const path = `messages.${index}.content.${at}`
      const { type } = block as Fields
      if (type === 'text') {
        texts.push(
          checkText(readString(readFields(block, path, 'type text cache_control? citations?')['text'], `${path}.text`)),
        )
      } else if (type === 'tool_use' && role === 'assistant') {
        message.calls.push(readToolUse(block, path, ids))
      } else if (type === 'tool_result' && role === 'user') {
        if (texts.length > 0) reject(`${path}: tool_result blocks must come before all text of the message`)
        const result = readToolResult(block, path)
        if (!unanswered.includes(result.id)) {
          reject(
            `${path}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${result.id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
          )
        }
        unanswered = unanswered.filter((id) => id !== result.id)
        message.results.push(result)
      } else if (type === 'thinking' && role === 'assistant') {
        readString(readFields(block, path, 'type thinking signature')['signature'], `${path}.signature`, {
          pattern: /./,
        })
      } else if (type === 'redacted_thinking' && role === 'assistant') {
        readFields(block, path, 'type data')
      } else {
        reject(`${path}: Input tag '${String(type)}' is not allowed in the role '${role}'`)
      }
    }
    if (unanswered.length > 0) {
      reject(
        `messages.${index - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${unanswered.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
      )
    }
    message.text = texts.join('\n')
    if (role === 'assistant') unanswered = message.calls.map(({ id }) => id)
    messages.push(message)
  }
  if (unanswered.length > 0)
    reject(`\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${unanswered.join(', ')}`)
  const last = messages.at(-1)
  if (last?.role === 'assistant' && last.text !== last.text.trimEnd()) {
    reject('messages: final assistant content cannot end with trailing whitespace')
  }
  return messages
}

function readToolUse(block: unknown, path: string, ids: Set<string>) {
  const { id, name, input } = readFields(block, path, 'type id name input cache_control? caller?')
  const read = {
    id: readString(id, `${path}.id`, { pattern: /^[a-zA-Z0-9_-]+$/ }),
    name: readString(name, `${path}.name`, { pattern: /^[a-zA-Z0-9_-]{1,200}$/ }),
    arguments: readObject(input, `${path}.input`),
  }
  if (ids.has(read.id)) reject('messages: `tool_use` ids must be unique')
  ids.add(read.id)
  return read
}

function readToolResult(block: unknown, path: string) {
  const { tool_use_id, content, is_error } = readFields(
    block,
    path,
    'type tool_use_id content? is_error? cache_control?',
  )
  const isEmpty = content === undefined || content === '' || (Array.isArray(content) && content.length === 0)
  if (is_error === true && isEmpty) reject(`${path}: content cannot be empty if \`is_error\` is true`)
  const text = isEmpty ? '' : typeof content === 'string' ? content : readTexts(content, `${path}.content`)
  return { id: readString(tool_use_id, `${path}.tool_use_id`), text }
}
