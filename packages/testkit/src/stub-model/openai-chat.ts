import * as check from './check.ts'
import { addDataUrl, checkMessages } from './conversation.ts'
import * as turn from './turn.ts'

/** OpenAI's Chat Completions API, which compatible servers and Azure offer too. */
export const openAiChat: turn.ModelProtocol = {
  name: 'openai-compatible',
  path: /\/chat\/completions$/,
  isStreaming: turn.asksForStream,
  read: readRequest,
  whole(speech, request) {
    const { text = null, reasoning } = speech
    const calls = turn.partsOf(speech).flatMap((part) => (part.kind === 'call' ? [part] : []))
    const message = {
      role: 'assistant',
      content: isRefusal(speech) ? null : text,
      refusal: isRefusal(speech) ? (text ?? 'No.') : null,
      ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
      tool_calls: speech.toolCalls && calls.map((call) => toToolCall(call, call.text)),
    }
    const choice = { index: 0, message, logprobs: null, finish_reason: FINISH_REASONS[turn.finishOf(speech)] }
    return { ...head('chat.completion', request), choices: [choice], usage: usage(speech) }
  },
  stream(speech, request) {
    const common = head('chat.completion.chunk', request)
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      ...common,
      choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    })
    const parts = turn.partsOf(speech)
    const firstCall = parts.findIndex(({ kind }) => kind === 'call')
    const chunks = parts.flatMap((part, position) => {
      const pieces = turn.splitIntoPieces(part.text)
      if (part.kind === 'reasoning') return pieces.map((piece) => chunk({ reasoning_content: piece }))
      if (part.kind === 'text') {
        const field = isRefusal(speech) ? 'refusal' : 'content'
        return pieces.map((piece) => chunk({ [field]: piece }))
      }
      const index = position - firstCall
      return [
        chunk({ tool_calls: [{ index, ...toToolCall(part, '') }] }),
        ...pieces.map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] })),
      ]
    })
    return [
      chunk({ role: 'assistant', content: speech.text === undefined ? null : '' }),
      ...chunks,
      chunk({}, FINISH_REASONS[turn.finishOf(speech)]),
      { ...common, choices: [], usage: usage(speech) },
    ]
  },
  encoding: { type: 'text/event-stream', encode: (events) => `${turn.toServerSentEvents(events)}data: [DONE]\n\n` },
  error: (status, message, code) => ({
    error: { message, type: errorType(status), param: null, code: code ?? null },
  }),
  // Azure's content filter.
  promptBlocked: () => ({
    status: 400,
    body: {
      error: {
        message:
          "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.",
        type: null,
        param: 'prompt',
        code: 'content_filter',
        status: 400,
        innererror: {
          code: 'ResponsibleAIPolicyViolation',
          content_filter_result: { hate: { filtered: true, severity: 'high' } },
        },
      },
    },
  }),
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

function errorType(status: number): string {
  if (status === 429) return 'rate_limit_exceeded'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}

const REQUEST =
  'model messages tools? tool_choice? temperature? top_p? n? stream? stream_options? stop? max_tokens? max_completion_tokens? ' +
  'presence_penalty? frequency_penalty? logit_bias? logprobs? top_logprobs? user? response_format? seed? parallel_tool_calls? ' +
  'reasoning_effort? verbosity? store? metadata? service_tier? prompt_cache_key? prompt_cache_options? prompt_cache_retention? ' +
  'safety_identifier? modalities? prediction? moderation? audio? web_search_options?'

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/
const MAX_TOOLS = 128
/** Models that take `max_completion_tokens` instead, and no sampling options. */
const REASONING_MODEL = /^(gpt-[5-9]|o[1-9])/

function readRequest({ body }: turn.IncomingModelRequest) {
  const request = check.readFields(body, 'request', REQUEST)
  checkReasoningModel(request, ['max_tokens', 'temperature', 'top_p'])
  if (request['stream_options'] !== undefined && request['stream'] !== true) {
    check.reject("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
  }
  for (const name of ['max_tokens', 'max_completion_tokens']) check.checkInteger(request[name], name, 1)
  if (request['tool_choice'] !== undefined && request['tools'] === undefined) {
    check.reject("'tool_choice' is only allowed when 'tools' are specified.")
  }
  const tools = readOpenAiTools(request['tools'], (item, path) => {
    const { function: definition } = check.readFields(item, path, 'type function')
    return check.readFields(definition, `${path}.function`, 'name description? parameters? strict?')
  })
  return { ...readMessages(request['messages']), tools }
}

/** Rejects the parameters that a reasoning model does not take. Both APIs of OpenAI have these rules. */
export function checkReasoningModel(request: check.Fields, rejected: readonly string[]): void {
  if (!REASONING_MODEL.test(check.readString(request['model'], 'model'))) return
  const name = rejected.find((each) => request[each] !== undefined)
  if (name === undefined) return
  const instead = name === 'max_tokens' ? " Use 'max_completion_tokens' instead." : ''
  check.reject(`Unsupported parameter: '${name}' is not supported with this model.${instead}`)
}

/** Reads the definitions of functions, whose fields `fieldsOf` finds: the two APIs have them on different levels. */
export function readOpenAiTools(value: unknown, fieldsOf: (item: unknown, path: string) => check.Fields) {
  const tools = check.readOptionalList(value, 'tools', { max: MAX_TOOLS }).map((item, index) => {
    const path = `tools[${index}]`
    const { type } = item as check.Fields
    if (type !== 'function')
      check.reject(`Invalid value: '${String(type)}'. Supported values are: 'function' (${path}.type)`)
    const { name, description, parameters: schema, strict } = fieldsOf(item, path)
    const strictRules = strict === true ? { isStrict: true, maxDepth: 10 } : {}
    const rules = { name: TOOL_NAME, maxDescription: 1_024, schema: { allowsTypeLists: true, ...strictRules } }
    return check.readTool({ name, description, schema }, path, rules)
  })
  return check.checkToolNames(tools)
}

/** Reads a call of a function; the two APIs allow ids of different lengths. */
export function readOpenAiCall(call: { id: unknown; name: unknown; text: unknown }, path: string, maxId: number) {
  return {
    id: check.readString(call.id, `${path}.id`, { max: maxId, pattern: /./ }),
    name: check.readString(call.name, `${path}.name`, { pattern: TOOL_NAME }),
    arguments: check.readJsonObject(call.text, `${path}.arguments`),
  }
}

function readMessages(value: unknown) {
  const instructions: string[] = []
  const messages: turn.ModelMessage[] = []
  for (const [index, item] of check.readList(value, 'messages').entries()) {
    const path = `messages[${index}]`
    const { role } = item as check.Fields
    if (role !== 'tool' && messages.at(-1)?.calls.length) {
      check.reject(`An assistant message with 'tool_calls' must be followed by tool messages, before '${path}'`)
    }
    if (role === 'assistant') {
      messages.push(readAssistant(item, path))
    } else if (role === 'tool') {
      const { tool_call_id: id, content } = check.readFields(item, path, 'role content tool_call_id')
      const result = { id: check.readString(id, `${path}.tool_call_id`), text: readText(content, `${path}.content`) }
      // The results of one message with calls are messages of their own.
      const last = messages.at(-1)
      if (last && last.results.length > 0) last.results.push(result)
      else messages.push({ role: 'user', text: '', calls: [], results: [result] })
    } else if (role === 'user' || role === 'system' || role === 'developer') {
      const { content } = check.readFields(item, path, 'role content name?')
      const message: turn.ModelMessage = { role: 'user', text: '', calls: [], results: [] }
      message.text = readText(content, `${path}.content`, role === 'user' ? message : undefined)
      if (role === 'user') messages.push(message)
      else instructions.push(message.text)
    } else {
      check.reject(`Invalid value: '${String(role)}'. Supported values are: 'system', 'assistant', 'user', 'tool'`)
    }
  }
  return { instructions: instructions.join('\n'), messages: checkMessages(messages) }
}

function readAssistant(item: unknown, path: string): turn.ModelMessage {
  const names = 'role content? tool_calls? refusal? name? audio? reasoning_content?'
  const { content = null, tool_calls } = check.readFields(item, path, names)
  if (content === null && tool_calls === undefined) {
    check.reject(`Invalid value for 'content': expected a string, got null. (${path})`)
  }
  const calls = check.readOptionalList(tool_calls, `${path}.tool_calls`, { max: 128 }).map((call, index) => {
    const callPath = `${path}.tool_calls[${index}]`
    const { id, type, function: called } = check.readFields(call, callPath, 'id type function')
    if (type !== 'function') check.reject(`${callPath}.type: must be 'function'`)
    const { name, arguments: text } = check.readFields(called, `${callPath}.function`, 'name arguments')
    return readOpenAiCall({ id, name, text }, callPath, 40)
  })
  return { role: 'assistant', text: content === null ? '' : readText(content, `${path}.content`), calls, results: [] }
}

/** Reads texts, and the files that a message of the user may have. */
function readText(value: unknown, path: string, user?: turn.ModelMessage): string {
  if (typeof value === 'string') return value
  const parts = check.readList(value, path).flatMap((part, index) => {
    const at = `${path}[${index}]`
    if (user && (part as check.Fields)['type'] === 'image_url') {
      const { image_url: image } = check.readFields(part, at, 'type image_url')
      addDataUrl(user, check.readFields(image, at, 'url detail?')['url'], at)
      return []
    }
    if (user && (part as check.Fields)['type'] === 'file') {
      const { file } = check.readFields(part, at, 'type file')
      addDataUrl(user, check.readFields(file, at, 'filename file_data')['file_data'], at)
      return []
    }
    const { type, text } = check.readFields(part, `${path}[${index}]`, 'type text')
    if (type !== 'text') check.reject(`Invalid value: '${String(type)}'. Supported values are: 'text'`)
    return [check.readString(text, `${path}[${index}].text`)]
  })
  return parts.join('\n')
}
