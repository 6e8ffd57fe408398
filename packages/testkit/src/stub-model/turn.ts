import type { IncomingHttpHeaders, ServerResponse } from 'node:http'

/** A tool call that the model requests. */
export interface ModelToolCall {
  /** @default a random id */
  id?: string
  name: string
  /** Sent as JSON; a string is sent as it is, so that a test can send malformed JSON. */
  arguments: unknown
}

/** The model's output of one turn: text, tool calls or both. */
export interface ModelSpeech {
  text?: string
  toolCalls?: ModelToolCall[]
  /** @default 'tool_calls' if there are any, else 'stop' */
  finishReason?: 'stop' | 'tool_calls' | 'length' | 'content_filter'
  /** @default 10 and 5 */
  usage?: { inputTokens: number; outputTokens: number }
  /** Resets the connection in the middle of the answer. */
  isCutOff?: boolean
  delayMs?: number
}

/** A failure instead of an answer: no answer, a connection reset, an HTTP status, or bytes that the test writes itself. */
export type ModelFailure =
  | { failure: 'hang' }
  | { failure: 'reset' }
  | { failure: 'custom'; respond: (response: ServerResponse) => void }
  | { failure: 'status'; status: number; message?: string; retryAfterSeconds?: number; body?: string }

/** The answer to one request. */
export type ModelAnswer = ModelSpeech | ModelFailure

/** An answer, or a function of the request and the number of requests before it that returns one. */
export type ModelTurn = ModelAnswer | ((request: ModelRequest, index: number) => ModelAnswer | Promise<ModelAnswer>)

/** One request as it arrived. */
export interface ModelRequest {
  protocol: 'openai' | 'anthropic'
  path: string
  headers: IncomingHttpHeaders
  body: Record<string, unknown>
  isStreaming: boolean
  /** Milliseconds since 1970. */
  receivedAt: number
}

/** Encodes a turn for one provider's API. */
export interface ModelProtocol {
  name: ModelRequest['protocol']
  /** The JSON body of an answer without streaming. */
  whole: (speech: ModelSpeech, request: ModelRequest) => object
  /** The server-sent events of a streamed answer. */
  stream: (speech: ModelSpeech, request: ModelRequest) => string
  errorBody: (status: number, message: string) => object
}

/** Serializes a tool call's arguments. */
export function argumentsText(call: ModelToolCall): string {
  return typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments)
}

/** Splits a text into the pieces of a stream; at least one. */
export function splitIntoPieces(text: string, size = 8): string[] {
  return text.match(new RegExp(`[^]{1,${size}}`, 'gu')) ?? ['']
}
