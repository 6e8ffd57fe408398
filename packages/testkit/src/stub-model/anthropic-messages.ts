import * as check from './check.ts'
import { addFile, addText, checkMessages, newMessage } from './conversation.ts'
import * as turn from './turn.ts'

/** Anthropic's Messages API. */
export const anthropicMessages: turn.ModelProtocol = {
  name: 'anthropic',
  path: /\/messages$/,
  isStreaming: turn.asksForStream,
  read: readRequest,
  whole: (speech, request) => ({
    ...head(request),
    content: turn.partsOf(speech).map((part) => toBlock(part).whole),
    ...ending(speech),
    usage: usage(speech),
  }),
  stream(speech, request) {
    const started = { ...head(request), content: [], stop_reason: null, stop_sequence: null }
    const tokens = usage(speech)
    return [
      { type: 'message_start', message: { ...started, usage: { ...tokens, output_tokens: 1 } } },
      { type: 'ping' },
      ...turn.partsOf(speech).flatMap((part, index) => {
        const { start, deltas } = toBlock(part)
        return [
          { type: 'content_block_start', index, content_block: start },
          ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
          { type: 'content_block_stop', index },
        ]
      }),
      { type: 'message_delta', delta: ending(speech), usage: { output_tokens: tokens.output_tokens } },
      { type: 'message_stop' },
    ]
  },
  error: (status, message, code) => ({
    type: 'error',
    error: { type: code ?? errorType(status), message },
    request_id: turn.newId('req_'),
  }),
  promptBlocked: () => ({ speech: { finishReason: 'refusal' } }),
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

function ending(speech: turn.ModelSpeech) {
  return { stop_reason: STOP_REASONS[turn.finishOf(speech)], stop_sequence: null }
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

const ERROR_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

function errorType(status: number): string {
  return ERROR_TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}

const REQUEST =
  'model max_tokens messages system? tools? tool_choice? temperature? top_p? top_k? stop_sequences? stream? metadata? thinking? ' +
  'service_tier? container? output_config? cache_control? inference_geo? user_profile_id?'
/** Fields that the API knows only with the header `anthropic-beta`. */
const BETA_REQUEST = ' mcp_servers? context_management? speed?'
/** Models after Claude Opus 4.6, which take no sampling options but the defaults. */
const WITHOUT_SAMPLING = /^claude-(?:opus-4-(?:[7-9]|[1-9]\d)(?!\d)|[a-z]+-[5-9](?!\d))/
const TOOL = 'type? name description? input_schema cache_control? strict? eager_input_streaming?'
const TEXT = 'type text cache_control? citations?'
const MAX_CACHE_CONTROLS = 4

export const ANTHROPIC_SCHEMA_RULES: check.SchemaRules = {
  propertyName: /^[a-zA-Z0-9_.-]{1,64}$/,
  allowsTypeLists: true,
}

function readRequest({ body, headers }: turn.IncomingModelRequest) {
  if (!headers['anthropic-version']) check.reject('anthropic-version: header is required')
  if (!headers['x-api-key'] && !headers.authorization) check.reject('x-api-key header is required', 401)
  const request = check.readFields(body, 'request', REQUEST + (headers['anthropic-beta'] ? BETA_REQUEST : ''))
  const model = check.readString(request['model'], 'model', { pattern: /./ })
  check.checkInteger(request['max_tokens'], 'max_tokens', 1)
  const { temperature = 1, top_p: topP = 1, top_k: topK, system } = request
  if (WITHOUT_SAMPLING.test(model) && (temperature !== 1 || Number(topP) < 0.99 || topK !== undefined)) {
    check.reject('temperature, top_p and top_k are not supported by this model.')
  }
  if (!(Number(temperature) >= 0 && Number(temperature) <= 1)) check.reject('temperature: range: 0..1')
  const cacheControls = JSON.stringify(body).split('"cache_control":{').length - 1
  if (cacheControls > MAX_CACHE_CONTROLS) {
    check.reject(`A maximum of 4 blocks with cache_control may be provided. Found ${cacheControls}.`)
  }
  const tools = check.readOptionalList(request['tools'], 'tools', { min: 0 }).map((tool, index) => {
    const path = `tools.${index}.custom`
    const { name, description, input_schema: schema } = check.readFields(tool, path, TOOL)
    const rules = { name: /^[a-zA-Z0-9_-]{1,128}$/, schema: ANTHROPIC_SCHEMA_RULES }
    return check.readTool({ name, description, schema }, path, rules)
  })
  if (request['tool_choice'] !== undefined && tools.length === 0) {
    check.reject('tool_choice: may only be specified while providing tools')
  }
  const instructions = system === undefined ? '' : readTexts(system, 'system')
  return { instructions, messages: readMessages(request['messages']), tools: check.checkToolNames(tools) }
}

function readTexts(value: unknown, path: string): string {
  if (typeof value === 'string') return checkText(value)
  return check
    .readList(value, path)
    .map((block, index) => {
      const { type, text } = check.readFields(block, `${path}.${index}`, TEXT)
      if (type !== 'text') check.reject(`${path}.${index}: Input tag '${String(type)}' found does not match 'text'`)
      return checkText(check.readString(text, `${path}.${index}.text`))
    })
    .join('\n')
}

function checkText(text: string): string {
  if (text === '') check.reject('messages: text content blocks must be non-empty')
  if (text.trim() === '') check.reject('messages: text content blocks must contain non-whitespace text')
  return text
}

function readMessages(value: unknown): turn.ModelMessage[] {
  const messages = check.readList(value, 'messages').map((item, index) => {
    const path = `messages.${index}`
    const { role, content } = check.readFields(item, path, 'role content')
    const message = newMessage(role, path)
    if (typeof content === 'string') return { ...message, text: checkText(content) }
    for (const [at, block] of check.readList(content, `${path}.content`).entries()) {
      readBlock(block, `${path}.content.${at}`, message)
    }
    return message
  })
  const ids = messages.flatMap(({ calls }) => calls.map(({ id }) => id))
  if (new Set(ids).size < ids.length) check.reject('messages: `tool_use` ids must be unique')
  const last = messages.at(-1)
  if (last?.role === 'assistant' && last.text !== last.text.trimEnd()) {
    check.reject('messages: final assistant content cannot end with trailing whitespace')
  }
  return checkMessages(messages, { startsWithUser: true })
}

function readBlock(block: unknown, path: string, message: turn.ModelMessage): void {
  const { type } = block as check.Fields
  if (type === 'text') {
    addText(message, checkText(check.readString(check.readFields(block, path, TEXT)['text'], `${path}.text`)))
  } else if (type === 'tool_use') {
    const { id, name, input } = check.readFields(block, path, 'type id name input cache_control? caller?')
    message.calls.push({
      id: check.readString(id, `${path}.id`, { pattern: /^[a-zA-Z0-9_-]+$/ }),
      name: check.readString(name, `${path}.name`, { pattern: /^[a-zA-Z0-9_-]{1,200}$/ }),
      arguments: check.readObject(input, `${path}.input`),
    })
  } else if (type === 'tool_result') {
    if (message.text !== '') check.reject(`${path}: tool_result blocks must come before all text of the message`)
    message.results.push(readToolResult(block, path))
  } else if (type === 'image' || type === 'document') {
    const names =
      type === 'image' ? 'type source cache_control?' : 'type source title? context? citations? cache_control?'
    const { source } = check.readFields(block, path, names)
    const {
      type: kind,
      media_type: mediaType,
      data,
    } = check.readFields(source, `${path}.source`, 'type media_type data')
    const isDocument = String(mediaType) === 'application/pdf'
    if (kind !== 'base64' || isDocument !== (type === 'document'))
      check.reject(`${path}.source: Input should be base64`)
    addFile(message, String(mediaType), data, path)
  } else if (type === 'thinking' && message.role === 'assistant') {
    const { signature } = check.readFields(block, path, 'type thinking signature')
    check.readString(signature, `${path}.signature`, { pattern: /./ })
  } else if (type === 'redacted_thinking' && message.role === 'assistant') {
    check.readFields(block, path, 'type data')
  } else {
    check.reject(`${path}: Input tag '${String(type)}' is not allowed in the role '${message.role}'`)
  }
}

function readToolResult(block: unknown, path: string) {
  const names = 'type tool_use_id content? is_error? cache_control?'
  const { tool_use_id, content = '', is_error } = check.readFields(block, path, names)
  const isEmpty = content === '' || (Array.isArray(content) && content.length === 0)
  if (is_error === true && isEmpty) check.reject(`${path}: content cannot be empty if \`is_error\` is true`)
  const text = isEmpty ? '' : typeof content === 'string' ? content : readTexts(content, `${path}.content`)
  return { id: check.readString(tool_use_id, `${path}.tool_use_id`), text }
}
