import {
  checkToolSchema,
  checkUnique,
  type Fields,
  readFields,
  readInteger,
  readJsonObject,
  readList,
  readString,
  reject,
} from './check.ts'
import {
  argumentsText,
  finishOf,
  type IncomingModelRequest,
  type ModelFinish,
  type ModelMessage,
  type ModelProtocol,
  type ModelSpeech,
  newId,
  splitIntoPieces,
  tokensOf,
} from './turn.ts'

/** OpenAI's Chat Completions API, which compatible servers and Azure offer too. */
export const openAiChat: ModelProtocol = {
  name: 'openai-compatible',
  path: /\/chat\/completions$/,
  isStreaming: (_path, body) => body['stream'] === true,
  read: readRequest,
  whole(speech, request) {
    const message = {
      role: 'assistant',
      content: isRefusal(speech) ? null : (speech.text ?? null),
      refusal: isRefusal(speech) ? (speech.text ?? 'No.') : null,
      ...(speech.reasoning === undefined ? {} : { reasoning_content: speech.reasoning }),
      tool_calls: speech.toolCalls?.map((call) => ({
        id: call.id ?? newId('call_'),
        type: 'function',
        function: { name: call.name, arguments: argumentsText(call) },
      })),
    }
    const choice = { index: 0, message, logprobs: null, finish_reason: FINISH_REASONS[finishOf(speech)] }
    return { ...head('chat.completion', request), choices: [choice], usage: usage(speech) }
  },
  stream(speech, request) {
    const common = head('chat.completion.chunk', request)
    const chunk = (delta: object, finish: string | null = null) => ({
      ...common,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    })
    const chunks: object[] = [chunk({ role: 'assistant', content: speech.text === undefined ? null : '' })]
    if (speech.reasoning !== undefined) {
      chunks.push(...splitIntoPieces(speech.reasoning).map((piece) => chunk({ reasoning_content: piece })))
    }
    if (speech.text !== undefined) {
      const field = isRefusal(speech) ? 'refusal' : 'content'
      chunks.push(...splitIntoPieces(speech.text).map((piece) => chunk({ [field]: piece })))
    }
    for (const [index, call] of (speech.toolCalls ?? []).entries()) {
      const start = {
        index,
        id: call.id ?? newId('call_'),
        type: 'function',
        function: { name: call.name, arguments: '' },
      }
      chunks.push(chunk({ tool_calls: [start] }))
      const parts = splitIntoPieces(argumentsText(call))
      chunks.push(...parts.map((part) => chunk({ tool_calls: [{ index, function: { arguments: part } }] })))
    }
    chunks.push(chunk({}, FINISH_REASONS[finishOf(speech)]))
    chunks.push({ ...common, choices: [], usage: usage(speech) })
    return [...chunks.map((item) => JSON.stringify(item)), '[DONE]'].map((data) => `data: ${data}\n\n`).join('')
  },
  streamType: 'text/event-stream',
  error: (status, message, code) => ({
    body: { error: { message, type: errorType(status), param: null, code: code ?? null } },
  }),
  // Azure's content filter.
  promptBlocked: () => ({
    status: 400,
    body: JSON.stringify({
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
    }),
  }),
}

const FINISH_REASONS: Record<ModelFinish, string> = {
  stop: 'stop',
  tool_calls: 'tool_calls',
  length: 'length',
  content_filter: 'content_filter',
  // OpenAI ends a refusal like any other answer.
  refusal: 'stop',
  pause: 'paused',
  unknown: 'something_new',
}

function isRefusal(speech: ModelSpeech): boolean {
  return finishOf(speech) === 'refusal'
}

const REQUEST =
  'model messages tools? tool_choice? temperature? top_p? n? stream? stream_options? stop? max_tokens? max_completion_tokens? ' +
  'presence_penalty? frequency_penalty? logit_bias? logprobs? top_logprobs? user? response_format? seed? parallel_tool_calls? ' +
  'reasoning_effort? verbosity? store? metadata? service_tier? prompt_cache_key? safety_identifier? modalities? prediction?'

export const OPENAI_TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/
export const OPENAI_MAX_TOOLS = 128
export const OPENAI_MAX_DESCRIPTION = 1_024
/** Models that take `max_completion_tokens` instead, and no sampling options. */
export const OPENAI_REASONING_MODEL = /^(gpt-[5-9]|o[1-9])/

function readRequest({ body }: IncomingModelRequest) {
  const request = readFields(body, 'request', REQUEST)
  const model = readString(request['model'], 'model')
  if (request['stream_options'] !== undefined && request['stream'] !== true) {
    reject("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
  }
  for (const name of ['max_tokens', 'max_completion_tokens']) {
    if (request[name] !== undefined) readInteger(request[name], name, 1)
  }
  if (OPENAI_REASONING_MODEL.test(model)) {
    for (const [name, instead] of [
      ['max_tokens', " Use 'max_completion_tokens' instead."],
      ['temperature', ''],
      ['top_p', ''],
    ] as const) {
      if (request[name] !== undefined)
        reject(`Unsupported parameter: '${name}' is not supported with this model.${instead}`)
    }
  }
  const tools = request['tools'] === undefined ? [] : readTools(request['tools'])
  if (request['tool_choice'] !== undefined && request['tools'] === undefined) {
    reject("'tool_choice' is only allowed when 'tools' are specified.")
  }
  return { ...readMessages(request['messages']), tools }
}

function readTools(value: unknown) {
  const tools = readList(value, 'tools', { max: OPENAI_MAX_TOOLS }).map((item, index) => {
    const path = `tools[${index}]`
    const { type, function: definition } = readFields(item, path, 'type function')
    if (type !== 'function') reject(`Invalid value: '${String(type)}'. Supported values are: 'function'`)
    return readFunction(definition, `${path}.function`, 'name description? parameters? strict?')
  })
  checkUnique(
    tools.map(({ name }) => name),
    (name) => `Invalid 'tools': duplicate function name '${name}'`,
  )
  return tools
}

/** Reads the definition of a function, of which the Responses API has the same fields one level higher. */
export function readFunction(value: unknown, path: string, names: string) {
  const { name, description = '', parameters, strict } = readFields(value, path, names)
  return {
    name: readString(name, `${path}.name`, { pattern: OPENAI_TOOL_NAME }),
    description: readString(description, `${path}.description`, { max: OPENAI_MAX_DESCRIPTION }),
    schema: checkToolSchema(parameters, `${path}.parameters`, {
      allowsTypeLists: true,
      ...(strict === true ? { isStrict: true, maxDepth: 10 } : {}),
    }),
  }
}

function readMessages(value: unknown) {
  const instructions: string[] = []
  const messages: ModelMessage[] = []
  let unanswered: string[] = []
  for (const [index, item] of readList(value, 'messages').entries()) {
    const path = `messages[${index}]`
    const { role } = item as Fields
    if (role !== 'tool' && unanswered.length > 0) {
      reject(
        `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${unanswered.join(', ')}`,
      )
    }
    if (role === 'system' || role === 'developer') {
      instructions.push(readText(readFields(item, path, 'role content name?')['content'], `${path}.content`))
    } else if (role === 'user') {
      const text = readText(readFields(item, path, 'role content name?')['content'], `${path}.content`)
      messages.push({ role, text, calls: [], results: [] })
    } else if (role === 'assistant') {
      const message = readAssistant(item, path)
      unanswered = message.calls.map(({ id }) => id)
      messages.push(message)
    } else if (role === 'tool') {
      const { tool_call_id, content } = readFields(item, path, 'role content tool_call_id')
      const id = readString(tool_call_id, `${path}.tool_call_id`)
      if (!unanswered.includes(id)) {
        reject(
          "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
        )
      }
      unanswered = unanswered.filter((other) => other !== id)
      const result = { id, text: readText(content, `${path}.content`) }
      const last = messages.at(-1)
      if (last?.role === 'user') last.results.push(result)
      else messages.push({ role: 'user', text: '', calls: [], results: [result] })
    } else {
      reject(`Invalid value: '${String(role)}'. Supported values are: 'system', 'assistant', 'user', 'tool'`)
    }
  }
  if (unanswered.length > 0)
    reject(`The following tool_call_ids did not have response messages: ${unanswered.join(', ')}`)
  return { instructions: instructions.join('\n'), messages }
}

function readAssistant(item: unknown, path: string): ModelMessage {
  const { content = null, tool_calls } = readFields(
    item,
    path,
    'role content? tool_calls? refusal? name? audio? reasoning_content?',
  )
  if (content === null && tool_calls === undefined) {
    reject(`Invalid value for 'content': expected a string, got null. (${path})`)
  }
  const calls = tool_calls === undefined ? [] : readList(tool_calls, `${path}.tool_calls`, { max: 128 })
  const read = calls.map((call, index) => {
    const callPath = `${path}.tool_calls[${index}]`
    const { id, type, function: called } = readFields(call, callPath, 'id type function')
    if (type !== 'function') reject(`${callPath}.type: must be 'function'`)
    const { name, arguments: text } = readFields(called, `${callPath}.function`, 'name arguments')
    return {
      id: readString(id, `${callPath}.id`, { max: 40, pattern: /./ }),
      name: readString(name, `${callPath}.function.name`, { pattern: OPENAI_TOOL_NAME }),
      arguments: readJsonObject(text, `${callPath}.function.arguments`),
    }
  })
  checkUnique(
    read.map(({ id }) => id),
    (id) => `Duplicate value for 'tool_call_id' of '${id}' in ${path}`,
  )
  return {
    role: 'assistant',
    text: content === null ? '' : readText(content, `${path}.content`),
    calls: read,
    results: [],
  }
}

function readText(value: unknown, path: string): string {
  if (typeof value === 'string') return value
  const parts = readList(value, path).map((part, index) => {
    const { type, text } = readFields(part, `${path}[${index}]`, 'type text')
    if (type !== 'text') reject(`Invalid value: '${String(type)}'. Supported values are: 'text'`)
    return readString(text, `${path}[${index}].text`)
  })
  return parts.join('\n')
}

function head(object: string, { model }: IncomingModelRequest) {
  return { id: newId('chatcmpl-'), object, created: Math.floor(Date.now() / 1000), model }
}

function usage(speech: ModelSpeech) {
  const { inputTokens, outputTokens, cacheReadTokens, reasoningTokens } = tokensOf(speech)
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cacheReadTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  }
}

function errorType(status: number): string {
  if (status === 429) return 'rate_limit_exceeded'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}
