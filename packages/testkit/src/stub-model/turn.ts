import type { IncomingHttpHeaders } from 'node:http'

/** One call of a tool as the model asks for it. */
export interface ModelToolCall {
  /** Default: made up, unique. */
  id?: string
  name: string
  /** Sent as JSON; a string goes out as it is, so that malformed JSON can be sent too. */
  arguments: unknown
}

/** What the model says in one turn: text, tool calls or both. */
export interface ModelSpeech {
  text?: string
  toolCalls?: ModelToolCall[]
  /** Default: `tool_calls` when there are any, else `stop`. */
  finishReason?: 'stop' | 'tool_calls' | 'length' | 'content_filter'
  usage?: { inputTokens: number; outputTokens: number }
  /** The connection breaks in the middle of the answer. */
  cutOff?: boolean
  delayMs?: number
}

/** What goes wrong instead of an answer. */
export type ModelFailure =
  | { failure: 'hang' }
  | { failure: 'reset' }
  | { failure: 'status'; status: number; message?: string; retryAfterSeconds?: number; body?: string }

/** What one request gets. */
export type ModelAnswer = ModelSpeech | ModelFailure

/** An answer, or what makes one from the request and the number of requests before it. */
export type ModelTurn = ModelAnswer | ((request: ModelRequest, index: number) => ModelAnswer | Promise<ModelAnswer>)

/** One request as it arrived. */
export interface ModelRequest {
  protocol: 'openai' | 'anthropic'
  path: string
  headers: IncomingHttpHeaders
  body: Record<string, unknown>
  streaming: boolean
  /** Unix time in milliseconds. */
  receivedAt: number
}

/** How a protocol puts a turn into bytes. */
export interface ModelProtocol {
  name: ModelRequest['protocol']
  whole: (speech: ModelSpeech, request: ModelRequest) => object
  /** Server-sent events. */
  stream: (speech: ModelSpeech, request: ModelRequest) => string
  errorBody: (status: number, message: string) => object
}

/** The arguments as the text that a model streams. */
export function argumentsText(call: ModelToolCall): string {
  return typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments)
}

/** Splits a text in pieces, as a model streams it: at least one. */
export function pieces(text: string, size = 8): string[] {
  return text.match(new RegExp(`[^]{1,${size}}`, 'gu')) ?? ['']
}
