import {
  checkUnique,
  type Fields,
  readFields,
  readInteger,
  readJsonObject,
  readList,
  readString,
  reject,
} from './check.ts'
import { OPENAI_MAX_TOOLS, OPENAI_REASONING_MODEL, OPENAI_TOOL_NAME, openAiChat, readFunction } from './openai-chat.ts'
import {
  argumentsText,
  finishOf,
  type IncomingModelRequest,
  type ModelMessage,
  type ModelProtocol,
  type ModelSpeech,
  newId,
  splitIntoPieces,
  toServerSentEvents,
  tokensOf,
} from './turn.ts'

/** OpenAI's Responses API. */
export const openAiResponses: ModelProtocol = {
  name: 'openai',
  path: /\/responses$/,
  isStreaming: (_path, body) => body['stream'] === true,
  read: readRequest,
  whole: (speech, request) => toResponse(speech, request, toItems(speech)),
  stream(speech, request) {
    const items = toItems(speech)
    const response = toResponse(speech, request, items)
    const started = { ...response, status: 'in_progress', output: [], usage: null, incomplete_details: null }
    const events: { type: string; [key: string]: unknown }[] = []
    const send = (type: string, event: object) => void events.push({ type, sequence_number: events.length, ...event })
    send('response.created', { response: started })
    send('response.in_progress', { response: started })
    for (const [output_index, item] of items.entries()) {
      const item_id = item['id']
      const open = { ...item, status: 'in_progress', ...OPEN_FIELDS[String(item['type'])] }
      send('response.output_item.added', { output_index, item: open })
      if (item['type'] === 'message') {
        const [part] = item['content'] as [{ type: string; text?: string; refusal?: string }]
        const kind = part.type === 'refusal' ? 'refusal' : 'output_text'
        const text = part.text ?? part.refusal ?? ''
        const common = { item_id, output_index, content_index: 0 }
        send('response.content_part.added', {
          ...common,
          part: { ...part, ...(kind === 'refusal' ? { refusal: '' } : { text: '' }) },
        })
        for (const delta of splitIntoPieces(text)) send(`response.${kind}.delta`, { ...common, delta })
        send(`response.${kind}.done`, { ...common, ...(kind === 'refusal' ? { refusal: text } : { text }) })
        send('response.content_part.done', { ...common, part })
      }
      if (item['type'] === 'function_call') {
        for (const delta of splitIntoPieces(String(item['arguments']))) {
          send('response.function_call_arguments.delta', { item_id, output_index, delta })
        }
        send('response.function_call_arguments.done', { item_id, output_index, arguments: item['arguments'] })
      }
      send('response.output_item.done', { output_index, item })
    }
    send(`response.${response.status === 'incomplete' ? 'incomplete' : 'completed'}`, { response })
    return toServerSentEvents(events)
  },
  streamType: 'text/event-stream',
  error: openAiChat.error,
  promptBlocked: openAiChat.promptBlocked,
}

const OPEN_FIELDS: Readonly<Record<string, object>> = { message: { content: [] }, function_call: { arguments: '' } }

function toItems(speech: ModelSpeech): Fields[] {
  const items: Fields[] = []
  if (speech.reasoning !== undefined) {
    const summary = [{ type: 'summary_text', text: speech.reasoning }]
    items.push({ type: 'reasoning', id: newId('rs_'), summary, encrypted_content: 'ZW5jcnlwdGVk' })
  }
  if (speech.text !== undefined) {
    const part =
      finishOf(speech) === 'refusal'
        ? { type: 'refusal', refusal: speech.text }
        : { type: 'output_text', text: speech.text, annotations: [], logprobs: [] }
    items.push({ type: 'message', id: newId('msg_'), status: 'completed', role: 'assistant', content: [part] })
  }
  for (const call of speech.toolCalls ?? []) {
    items.push({
      type: 'function_call',
      id: newId('fc_'),
      call_id: call.id ?? newId('call_'),
      name: call.name,
      arguments: argumentsText(call),
      status: 'completed',
    })
  }
  return items
}

const INCOMPLETE: Readonly<Record<string, string>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
  pause: 'paused',
  unknown: 'something_new',
}

function toResponse(speech: ModelSpeech, { model }: IncomingModelRequest, output: Fields[]) {
  const reason = INCOMPLETE[finishOf(speech)]
  const { inputTokens, outputTokens, cacheReadTokens, reasoningTokens } = tokensOf(speech)
  return {
    id: newId('resp_'),
    object: 'response',
    created_at: Math.floor(Date.now() / 1000),
    status: reason === undefined ? 'completed' : 'incomplete',
    error: null,
    incomplete_details: reason === undefined ? null : { reason },
    model,
    output,
    parallel_tool_calls: true,
    usage: {
      input_tokens: inputTokens,
      input_tokens_details: { cached_tokens: cacheReadTokens },
      output_tokens: outputTokens,
      output_tokens_details: { reasoning_tokens: reasoningTokens },
      total_tokens: inputTokens + outputTokens,
    },
  }
}

const REQUEST =
  'model input instructions? tools? tool_choice? store? include? reasoning? text? temperature? top_p? max_output_tokens? ' +
  'parallel_tool_calls? previous_response_id? conversation? prompt? stream? stream_options? metadata? user? service_tier? ' +
  'truncation? background? top_logprobs? max_tool_calls? prompt_cache_key? prompt_cache_retention? safety_identifier?'

function readRequest({ body }: IncomingModelRequest) {
  const request = readFields(body, 'request', REQUEST)
  const model = readString(request['model'], 'model')
  if (request['max_output_tokens'] !== undefined) readInteger(request['max_output_tokens'], 'max_output_tokens', 16)
  if (OPENAI_REASONING_MODEL.test(model)) {
    for (const name of ['temperature', 'top_p']) {
      if (request[name] !== undefined) reject(`Unsupported parameter: '${name}' is not supported with this model.`)
    }
  }
  const tools = request['tools'] === undefined ? [] : readList(request['tools'], 'tools', { max: OPENAI_MAX_TOOLS })
  const read = tools.map((item, index) => {
    if ((item as Fields)['type'] !== 'function') reject(`Invalid value: 'tools[${index}].type'`)
    return readFunction(item, `tools[${index}]`, 'type name description? parameters strict?')
  })
  checkUnique(
    read.map(({ name }) => name),
    (name) => `Invalid 'tools': duplicate function name '${name}'`,
  )
  return { ...readInput(request['input'], request['store'] !== false), tools: read }
}

function readInput(value: unknown, isStored: boolean) {
  const instructions: string[] = []
  const messages: ModelMessage[] = []
  const unanswered = new Set<string>()
  let isAfterReasoning = false
  const messageOf = (role: ModelMessage['role']): ModelMessage => {
    const last = messages.at(-1)
    if (last?.role === role) return last
    const message: ModelMessage = { role, text: '', calls: [], results: [] }
    messages.push(message)
    return message
  }
  const items = typeof value === 'string' ? [{ role: 'user', content: value }] : readList(value, 'input')
  for (const [index, item] of items.entries()) {
    const path = `input[${index}]`
    const { type = 'message', role } = item as Fields
    if (isAfterReasoning && !(type === 'function_call' || type === 'reasoning' || role === 'assistant')) {
      reject(`Item '${path}' of type 'reasoning' was provided without its required following item.`)
    }
    isAfterReasoning = type === 'reasoning'
    if (type === 'message') {
      const { content } = readFields(item, path, 'type? id? role content status? phase?')
      const text = readContent(content, `${path}.content`, String(role))
      if (role === 'system' || role === 'developer') instructions.push(text)
      else if (role === 'user' || role === 'assistant') addText(messageOf(role), text)
      else
        reject(
          `Invalid value: '${String(role)}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.`,
        )
    } else if (type === 'function_call') {
      const call = readFields(item, path, 'type id? call_id name arguments status?')
      if (call['id'] !== undefined) readString(call['id'], `${path}.id`, { pattern: /^fc/ })
      const id = readString(call['call_id'], `${path}.call_id`, { max: 64, pattern: /./ })
      if (unanswered.has(id)) reject(`Duplicate call_id '${id}'`)
      unanswered.add(id)
      messageOf('assistant').calls.push({
        id,
        name: readString(call['name'], `${path}.name`, { pattern: OPENAI_TOOL_NAME }),
        arguments: readJsonObject(call['arguments'], `${path}.arguments`),
      })
    } else if (type === 'function_call_output') {
      const { call_id, output } = readFields(item, path, 'type id? call_id output status?')
      const id = readString(call_id, `${path}.call_id`)
      if (!unanswered.delete(id)) reject(`No tool call found for function call output with call_id ${id}.`)
      messageOf('user').results.push({ id, text: readString(output, `${path}.output`) })
    } else if (type === 'reasoning') {
      const { id, summary, encrypted_content } = readFields(
        item,
        path,
        'type id? summary content? encrypted_content? status?',
      )
      readList(summary, `${path}.summary`, { min: 0 })
      if (!isStored && typeof encrypted_content !== 'string') {
        reject(`Item with id '${String(id)}' not found. Items are not persisted when \`store\` is set to false.`, 404)
      }
    } else if (type === 'item_reference') {
      reject(`Item with id '${String((item as Fields)['id'])}' not found.`, 404)
    } else {
      reject(`Invalid value: '${String(type)}' (${path}.type)`)
    }
  }
  for (const id of unanswered) reject(`No tool output found for function call ${id}.`)
  return { instructions: instructions.join('\n'), messages }
}

function readContent(value: unknown, path: string, role: string): string {
  if (typeof value === 'string') return value
  const parts = readList(value, path).map((part, index) => {
    const { type } = part as Fields
    const supported = role === 'assistant' ? ['output_text', 'refusal'] : ['input_text']
    if (!supported.includes(String(type))) {
      reject(
        `Invalid value: '${String(type)}'. Supported values are: ${supported.map((name) => `'${name}'`).join(' and ')}.`,
      )
    }
    const { text, refusal } = readFields(part, `${path}[${index}]`, 'type text? refusal? annotations? logprobs?')
    return readString(text ?? refusal, `${path}[${index}].text`)
  })
  return parts.join('\n')
}

function addText(message: ModelMessage, text: string): void {
  message.text = message.text === '' ? text : `${message.text}\n${text}`
}
