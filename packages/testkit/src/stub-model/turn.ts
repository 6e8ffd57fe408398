import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { parseJson } from '@workflow-service/contract'

/** A tool call that the model requests. */
interface ModelToolCall {
  /** @default a random id */
  id?: string
  name: string
  /** Sent as JSON; a string is sent as it is, so that a test can send malformed JSON. */
  arguments: unknown
}

/**
 * Why an answer ends. Each protocol has its own word, or the nearest one that it has: `refusal` is the model's own,
 * `content_filter` the provider's; `pause` is Anthropic's pause_turn; `unknown` is a word that no documentation has.
 */
export type ModelFinish = 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'refusal' | 'pause' | 'unknown'

/** Tokens as the provider counts them; the input includes the cached ones, the output the reasoning. */
export interface ModelTokens {
  inputTokens: number
  outputTokens: number
  cacheReadTokens?: number
  cacheWriteTokens?: number
  reasoningTokens?: number
}

/** The model's output of one turn: text, tool calls or both. */
export interface ModelSpeech {
  text?: string
  toolCalls?: ModelToolCall[]
  /** Disclosed reasoning, signed or encrypted where the protocol does so. */
  reasoning?: string
  /** @default 'tool_calls' if there are any, else 'stop' */
  finishReason?: ModelFinish
  /** @default 10 and 5 */
  usage?: ModelTokens
  /** Resets the connection in the middle of the answer. */
  isCutOff?: boolean
  delayMs?: number
  /** Sends the answer in pieces of 16 bytes with this delay after each. */
  dripMs?: number
}

/**
 * A failure instead of an answer: no answer, a connection reset, an HTTP status, or bytes that the test writes itself.
 */
export type ModelFailure =
  | { failure: 'hang' }
  | { failure: 'reset' }
  | { failure: 'custom'; respond: (response: ServerResponse) => void }
  | { failure: 'redirect'; location: string }
  /** The provider's filter rejects the prompt: Azure answers 400, Gemini 200 without an answer, the others refuse. */
  | { failure: 'prompt_blocked' }
  | { failure: 'status'; status: number; message?: string; code?: string; retryAfterSeconds?: number; body?: string }

/** The answer to one request. */
export type ModelAnswer = ModelSpeech | ModelFailure

/** An answer, or a function of the request and the number of requests before it that returns one. */
export type ModelTurn = ModelAnswer | ((request: ModelRequest, index: number) => ModelAnswer | Promise<ModelAnswer>)

/** The protocols, named as the providers in `AGENT_MODEL` that speak them. */
export type ModelProtocolName = 'openai' | 'openai-compatible' | 'anthropic' | 'google' | 'bedrock'

/** One request as it arrived. */
export interface ModelRequest {
  protocol: ModelProtocolName
  path: string
  headers: IncomingHttpHeaders
  body: Record<string, unknown>
  isStreaming: boolean
  /** Milliseconds since 1970. */
  receivedAt: number
  /** The name of the model. */
  model: string
  /** What the request says, in the same form for all protocols; empty if the request violates its protocol. */
  conversation: ModelConversation
}

export interface ModelConversation {
  instructions: string
  messages: ModelMessage[]
  tools: ModelToolDefinition[]
}

export interface ModelMessage {
  role: 'user' | 'assistant'
  /** All texts, one after another. */
  text: string
  calls: { id: string; name: string; arguments: Record<string, unknown> }[]
  results: { id: string; text: string }[]
  /** PDFs and images, each as its media type, a semicolon and its base64. */
  files?: string[]
}

export interface ModelToolDefinition {
  name: string
  description: string
  schema: Record<string, unknown>
}

/** What a part of a message says: a text, a file, a call of a tool or its result. */
export type ReadPart =
  | { readonly text: string }
  /** Its media type, a semicolon and its base64. */
  | { readonly file: string }
  | { readonly call: ModelMessage['calls'][number] }
  | { readonly result: ModelMessage['results'][number] }

/** What an API's request says, before it is checked. */
export interface ReadRequest {
  /** Of the instructions, the role is `system` or `developer`. Messages of one role in a row are one. */
  readonly messages: readonly { readonly role: string; readonly parts: readonly ReadPart[] }[]
  readonly tools: readonly { readonly name: string; readonly description?: string; readonly schema?: unknown }[]
}

/** A request of which all is known but what it says. */
export type IncomingModelRequest = Omit<ModelRequest, 'conversation'>

/** One provider's API. */
export interface ModelProtocol {
  name: ModelProtocolName
  /**
   * Matches the paths that the API has, without the base URL's; the group `model` is the model's name if the path has
   * it.
   */
  path: RegExp
  /** Whether the path asks for a stream. Default: the field `stream` does. */
  isStreaming?: (path: string) => boolean
  /** The headers of which one must have a key. Default: none is demanded. */
  keyHeaders?: readonly string[]
  /** What joins a result to its call. Default: its id. */
  resultsBy?: 'name'
  /** Whether a text may be of white space only. Default: no. */
  allowsBlankTexts?: boolean
  /** Reads a request. It throws for one that the API rejects. */
  read: (request: IncomingModelRequest) => ReadRequest
  /** The JSON body of an answer without streaming. */
  whole: (speech: ModelSpeech, request: IncomingModelRequest) => object
  /** The events of a streamed answer. */
  stream: (speech: ModelSpeech, request: IncomingModelRequest) => readonly object[]
  /** @default server-sent events */
  encoding?: { readonly type: string; readonly encode: (events: readonly object[]) => string | Buffer }
  /** The header with the id of an answer, where the body has none. */
  idHeader?: string
  error: (status: number, message: string, code?: string) => object
  /** The answer to a request whose prompt the provider's filter rejects. */
  promptBlocked: (request: IncomingModelRequest) => ModelAnswer
}

/** A part of an answer. Arguments are JSON text, and a value unless the text is malformed. */
export type SpeechPart =
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'text'; readonly text: string }
  | {
      readonly kind: 'call'
      readonly id?: string
      readonly name: string
      readonly text: string
      readonly value: unknown
    }

/** The parts of an answer, in the order in which every API sends them. */
export function partsOf({ reasoning, text, toolCalls = [] }: ModelSpeech): SpeechPart[] {
  return [
    ...(reasoning === undefined ? [] : [{ kind: 'reasoning' as const, text: reasoning }]),
    ...(text === undefined ? [] : [{ kind: 'text' as const, text }]),
    ...toolCalls.map(({ id, name, arguments: value }): SpeechPart => {
      if (typeof value !== 'string') return { kind: 'call', id, name, text: JSON.stringify(value), value }
      return { kind: 'call', id, name, text: value, value: parseJson(value) }
    }),
  ]
}

/** Why the answer ends. */
export function finishOf({ finishReason, toolCalls = [] }: ModelSpeech): ModelFinish {
  return finishReason ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop')
}

export function tokensOf({ usage = { inputTokens: 10, outputTokens: 5 } }: ModelSpeech): Required<ModelTokens> {
  return { cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0, ...usage }
}

export function newId(prefix: string): string {
  return `${prefix}${randomUUID().replaceAll('-', '').slice(0, 24)}`
}

/** Splits a text into the pieces of a stream; at least one. */
export function splitIntoPieces(text: string): string[] {
  // A long text in larger pieces, so that a stream of many MiB has few events.
  const length = Math.max(8, Math.ceil(text.length / 1_000))
  return text.match(new RegExp(`[^]{1,${length}}`, 'gu')) ?? ['']
}

/** Server-sent events, each with its type if it has one. */
export function toServerSentEvents(events: readonly object[]): string {
  return events
    .map(
      (event: { readonly type?: string }) =>
        `${event.type ? `event: ${event.type}\n` : ''}data: ${JSON.stringify(event)}\n\n`,
    )
    .join('')
}

/** Reads a call whose arguments are JSON text. */
export function readCall(id: string, name: string, text: string): ReadPart {
  return { call: { id, name, arguments: JSON.parse(text) as Record<string, unknown> } }
}

/** Reads what a data URL has. */
export function readDataUrl(url = ''): ReadPart {
  return { file: url.replace(/^data:([a-z/]+);base64,/, '$1;') }
}
