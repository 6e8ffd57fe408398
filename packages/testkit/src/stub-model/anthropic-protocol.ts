import { randomUUID } from 'node:crypto'
import { argumentsText, splitIntoPieces, type ModelProtocol, type ModelSpeech, type ModelToolCall } from './turn.ts'

/** Anthropic's Messages API. */
export const anthropicProtocol: ModelProtocol = {
  name: 'anthropic',
  whole(speech, { body }) {
    const content: object[] = speech.text === undefined ? [] : [{ type: 'text', text: speech.text }]
    for (const call of speech.toolCalls ?? []) content.push({ ...toolUse(call), input: parsedArguments(call) })
    return { ...message(body), content, ...ending(speech), usage: usage(speech) }
  },
  stream(speech, { body }) {
    const start = { ...message(body), content: [], stop_reason: null, stop_sequence: null }
    const { input_tokens, output_tokens } = usage(speech)
    const events: { type: string; [key: string]: unknown }[] = [
      { type: 'message_start', message: { ...start, usage: { input_tokens, output_tokens: 1 } } },
      { type: 'ping' },
    ]
    const block = (content_block: object, deltas: object[]) => {
      const index = events.filter(({ type }) => type === 'content_block_start').length
      events.push({ type: 'content_block_start', index, content_block })
      events.push(...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })))
      events.push({ type: 'content_block_stop', index })
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
    events.push({ type: 'message_delta', delta: ending(speech), usage: { output_tokens } })
    events.push({ type: 'message_stop' })
    return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
  },
  errorBody: (status, text) => ({ type: 'error', error: { type: errorType(status), message: text } }),
}

function message(body: Record<string, unknown>) {
  return { id: `msg_${randomUUID().replaceAll('-', '')}`, type: 'message', role: 'assistant', model: body['model'] }
}

function toolUse(call: ModelToolCall) {
  const id = call.id ?? `toolu_${randomUUID().replaceAll('-', '').slice(0, 24)}`
  return { type: 'tool_use', id, name: call.name }
}

/** Without streaming, the input is a JSON value: malformed arguments are sent as a string. */
function parsedArguments(call: ModelToolCall): unknown {
  if (typeof call.arguments !== 'string') return call.arguments
  try {
    return JSON.parse(call.arguments)
  } catch {
    return call.arguments
  }
}

function ending({ finishReason, toolCalls = [] }: ModelSpeech) {
  const reasons = { stop: 'end_turn', tool_calls: 'tool_use', length: 'max_tokens', content_filter: 'refusal' }
  return { stop_reason: reasons[finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop')], stop_sequence: null }
}

function usage({ usage: given = { inputTokens: 10, outputTokens: 5 } }: ModelSpeech) {
  return { input_tokens: given.inputTokens, output_tokens: given.outputTokens }
}

function errorType(status: number): string {
  if (status === 429) return 'rate_limit_error'
  if (status === 529) return 'overloaded_error'
  return status >= 500 ? 'api_error' : 'invalid_request_error'
}
