import * as check from './check.ts'
import { addDataUrl, addText, checkMessages, newMessage } from './conversation.ts'
import { checkReasoningModel, openAiChat, readOpenAiCall, readOpenAiTools } from './openai-chat.ts'
import * as turn from './turn.ts'

/** OpenAI's Responses API. */
export const openAiResponses: turn.ModelProtocol = {
  name: 'openai',
  path: /\/responses$/,
  isStreaming: turn.asksForStream,
  read: readRequest,
  whole: (speech, request) => toResponse(speech, request, toItems(speech)),
  stream(speech, request) {
    const items = toItems(speech)
    const response = toResponse(speech, request, items)
    const started = { ...response, status: 'in_progress', output: [], usage: null, incomplete_details: null }
    const events = [
      { type: 'response.created', response: started },
      { type: 'response.in_progress', response: started },
      ...items.flatMap(toEvents),
      { type: `response.${response.status}`, response },
    ]
    return events.map((event, sequence_number) => ({ ...event, sequence_number }))
  },
  error: openAiChat.error,
  promptBlocked: openAiChat.promptBlocked,
}

/** The events of one item of the output. */
function toEvents(item: check.Fields, output_index: number): { type: string; [key: string]: unknown }[] {
  const common = { item_id: item['id'], output_index }
  const events: { type: string; [key: string]: unknown }[] = []
  if (item['type'] === 'message') {
    const [part] = item['content'] as [{ type: string; text?: string; refusal?: string }]
    const [kind, field] = part.type === 'refusal' ? ['refusal', 'refusal'] : ['output_text', 'text']
    const text = part.text ?? part.refusal ?? ''
    const ofPart = { ...common, content_index: 0 }
    events.push(
      { type: 'response.content_part.added', ...ofPart, part: { ...part, [field]: '' } },
      ...turn.splitIntoPieces(text).map((delta) => ({ type: `response.${kind}.delta`, ...ofPart, delta })),
      { type: `response.${kind}.done`, ...ofPart, [field]: text },
      { type: 'response.content_part.done', ...ofPart, part },
    )
  }
  if (item['type'] === 'function_call') {
    const type = 'response.function_call_arguments'
    events.push(
      ...turn.splitIntoPieces(String(item['arguments'])).map((delta) => ({ type: `${type}.delta`, ...common, delta })),
      { type: `${type}.done`, ...common, arguments: item['arguments'] },
    )
  }
  const open = { ...item, status: 'in_progress', ...OPEN_FIELDS[String(item['type'])] }
  return [
    { type: 'response.output_item.added', output_index, item: open },
    ...events,
    { type: 'response.output_item.done', output_index, item },
  ]
}

const OPEN_FIELDS: Readonly<Record<string, object>> = { message: { content: [] }, function_call: { arguments: '' } }

function toItems(speech: turn.ModelSpeech): check.Fields[] {
  return turn.partsOf(speech).map((part) => {
    if (part.kind === 'reasoning') {
      const summary = [{ type: 'summary_text', text: part.text }]
      return { type: 'reasoning', id: turn.newId('rs_'), summary, encrypted_content: 'ZW5jcnlwdGVk' }
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

function toResponse(speech: turn.ModelSpeech, { model }: turn.IncomingModelRequest, output: check.Fields[]) {
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
    parallel_tool_calls: true,
    usage: {
      input_tokens: inputTokens,
      input_tokens_details: { cached_tokens: cacheReadTokens, cache_write_tokens: cacheWriteTokens },
      output_tokens: outputTokens,
      output_tokens_details: { reasoning_tokens: reasoningTokens },
      total_tokens: inputTokens + outputTokens,
    },
  }
}

const REQUEST =
  'model input instructions? tools? tool_choice? store? include? reasoning? text? temperature? top_p? max_output_tokens? ' +
  'parallel_tool_calls? previous_response_id? conversation? prompt? stream? stream_options? metadata? user? service_tier? ' +
  'truncation? background? top_logprobs? max_tool_calls? prompt_cache_key? prompt_cache_options? prompt_cache_retention? safety_identifier? ' +
  'context_management? moderation?'

function readRequest({ body }: turn.IncomingModelRequest) {
  const request = check.readFields(body, 'request', REQUEST)
  check.checkInteger(request['max_output_tokens'], 'max_output_tokens', 16)
  checkReasoningModel(request, ['temperature', 'top_p'])
  const tools = readOpenAiTools(request['tools'], (item, path) =>
    check.readFields(item, path, 'type name description? parameters strict?'),
  )
  return { ...readInput(request['input'], request['store'] !== false), tools }
}

function readInput(value: unknown, isStored: boolean) {
  const instructions: string[] = []
  const messages: turn.ModelMessage[] = []
  const messageOf = (role: turn.ModelMessage['role']): turn.ModelMessage => {
    if (messages.at(-1)?.role !== role) messages.push(newMessage(role, 'input'))
    return messages.at(-1)!
  }
  const items = typeof value === 'string' ? [{ role: 'user', content: value }] : check.readList(value, 'input')
  for (const [index, item] of items.entries()) {
    const path = `input[${index}]`
    const { type = 'message', role } = item as check.Fields
    const isAnswer = type === 'function_call' || type === 'reasoning' || role === 'assistant'
    if ((items[index - 1] as check.Fields | undefined)?.['type'] === 'reasoning' && !isAnswer) {
      check.reject(`Item '${path}' of type 'reasoning' was provided without its required following item.`)
    }
    if (type === 'message') {
      const { content } = check.readFields(item, path, 'type? id? role content status? phase?')
      const user = role === 'user' ? messageOf(role) : undefined
      const text = readContent(content, `${path}.content`, String(role), user)
      if (role === 'system' || role === 'developer') instructions.push(text)
      else if (role === 'user' || role === 'assistant') addText(messageOf(role), text)
      else
        check.reject(
          `Invalid value: '${String(role)}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.`,
        )
    } else if (type === 'function_call') {
      const call = check.readFields(item, path, 'type id? call_id name arguments status?')
      if (call['id'] !== undefined) check.readString(call['id'], `${path}.id`, { pattern: /^fc/ })
      const fields = { id: call['call_id'], name: call['name'], text: call['arguments'] }
      messageOf('assistant').calls.push(readOpenAiCall(fields, path, 64))
    } else if (type === 'function_call_output') {
      const { call_id: id, output } = check.readFields(item, path, 'type id? call_id output status?')
      const text = check.readString(output, `${path}.output`)
      messageOf('user').results.push({ id: check.readString(id, `${path}.call_id`), text })
    } else if (type === 'reasoning') {
      checkReasoning(item, path, isStored)
    } else if (type === 'item_reference') {
      check.reject(`Item with id '${String((item as check.Fields)['id'])}' not found.`, 404)
    } else {
      check.reject(`Invalid value: '${String(type)}' (${path}.type)`)
    }
  }
  return { instructions: instructions.join('\n'), messages: checkMessages(messages) }
}

function checkReasoning(item: unknown, path: string, isStored: boolean): void {
  const names = 'type id? summary content? encrypted_content? status?'
  const { id, summary, encrypted_content } = check.readFields(item, path, names)
  check.readList(summary, `${path}.summary`, { min: 0 })
  if (!isStored && typeof encrypted_content !== 'string') {
    check.reject(`Item with id '${String(id)}' not found. Items are not persisted when \`store\` is set to false.`, 404)
  }
}

function readContent(value: unknown, path: string, role: string, user?: turn.ModelMessage): string {
  if (typeof value === 'string') return value
  const supported = role === 'assistant' ? ['output_text', 'refusal'] : ['input_text']
  const parts = check.readList(value, path).flatMap((part, index) => {
    const { type } = part as check.Fields
    if (user && (type === 'input_image' || type === 'input_file')) {
      const names = type === 'input_image' ? 'type image_url detail?' : 'type filename file_data'
      const { image_url: image, file_data: data } = check.readFields(part, `${path}[${index}]`, names)
      addDataUrl(user, image ?? data, `${path}[${index}]`)
      return []
    }
    if (!supported.includes(String(type))) {
      const names = supported.map((name) => `'${name}'`).join(' and ')
      check.reject(`Invalid value: '${String(type)}'. Supported values are: ${names}.`)
    }
    const { text, refusal } = check.readFields(part, `${path}[${index}]`, 'type text? refusal? annotations? logprobs?')
    return [check.readString(text ?? refusal, `${path}[${index}].text`)]
  })
  return parts.join('\n')
}
