import { randomUUID } from 'node:crypto'
import { argumentsText, splitIntoPieces, type ModelProtocol, type ModelSpeech } from './turn.ts'

/** OpenAI's Chat Completions API, which compatible servers offer too. */
export const openAiProtocol: ModelProtocol = {
  name: 'openai',
  whole(speech, { body }) {
    const message = {
      role: 'assistant',
      content: speech.text ?? null,
      tool_calls: speech.toolCalls?.map((call) => ({
        id: call.id ?? newCallId(),
        type: 'function',
        function: { name: call.name, arguments: argumentsText(call) },
      })),
    }
    const choice = { index: 0, message, logprobs: null, finish_reason: finishReason(speech) }
    return { ...head('chat.completion', body), choices: [choice], usage: usage(speech) }
  },
  stream(speech, { body }) {
    const common = head('chat.completion.chunk', body)
    const chunk = (delta: object, finish: string | null = null) => ({
      ...common,
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    })
    const chunks: object[] = [chunk({ role: 'assistant', content: speech.text === undefined ? null : '' })]
    if (speech.text !== undefined) chunks.push(...splitIntoPieces(speech.text).map((content) => chunk({ content })))
    for (const [index, call] of (speech.toolCalls ?? []).entries()) {
      const start = {
        index,
        id: call.id ?? newCallId(),
        type: 'function',
        function: { name: call.name, arguments: '' },
      }
      chunks.push(chunk({ tool_calls: [start] }))
      const parts = splitIntoPieces(argumentsText(call))
      chunks.push(...parts.map((part) => chunk({ tool_calls: [{ index, function: { arguments: part } }] })))
    }
    chunks.push(chunk({}, finishReason(speech)))
    chunks.push({ ...common, choices: [], usage: usage(speech) })
    return [...chunks.map((item) => JSON.stringify(item)), '[DONE]'].map((data) => `data: ${data}\n\n`).join('')
  },
  errorBody: (status, message) => ({ error: { message, type: errorType(status), param: null, code: null } }),
}

function head(object: string, body: Record<string, unknown>) {
  return { id: `chatcmpl-${randomUUID()}`, object, created: Math.floor(Date.now() / 1000), model: body['model'] }
}

function newCallId(): string {
  return `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`
}

function finishReason({ finishReason: given, toolCalls = [] }: ModelSpeech): string {
  return given ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop')
}

function usage({ usage: given = { inputTokens: 10, outputTokens: 5 } }: ModelSpeech) {
  const { inputTokens, outputTokens } = given
  return { prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: inputTokens + outputTokens }
}

function errorType(status: number): string {
  if (status === 429) return 'rate_limit_exceeded'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}
