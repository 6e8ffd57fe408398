import { LOOKUP_ANSWER_MAX_BYTES, LOOKUP_DEADLINE_MS } from '@workflow-service/contract'
import type { Client, ClientOptions, FetchLike, ListToolsResult } from '@modelcontextprotocol/client'
import { assertSimple, describeError } from '@workflow-service/service-kit'
import { isCompressed, readLines } from '../outbound/answer-text.ts'
import { type AnsweredBody, toSentence } from '../outbound/outbound-result.ts'
import type { ReadBody } from '../outbound/send-request.ts'
import { type LookupAnswer, type LookupCall, notAnswered, type SendLookup } from './lookup-answer.ts'

/** A message around the text of a tool, in which characters may be escaped. */
const MESSAGE_MAX_BYTES = 4 * LOOKUP_ANSWER_MAX_BYTES
/** All answers of a connection, such as the pages of a list of tools with the schemas of their arguments. */
const CONNECTION_MAX_BYTES = 1_048_576
/** Of one answer. The SDK describes each member that is wrong, which would hold up the process. */
const ANSWER_LIMITS = { maxMembers: 5_000, maxDepth: 64 }
/** Events of a stream, each of which is searched for the response: very many empty ones would hold up the process. */
const MAX_EVENTS = 1_000
const LIST_MAX_PAGES = 4
/** Requests of a connection: three to connect, a list or a call that is repeated after a list, and one for the end. */
const MAX_REQUESTS = 10

/** The server did not answer as the protocol says. The message is a sentence. */
export class McpError extends Error {
  override name = 'McpError'
}

/** Lists the tools of a server. @throws McpError */
export async function listMcpTools(
  send: SendLookup,
  url: string,
  maxRequests = MAX_REQUESTS,
): Promise<ListToolsResult['tools']> {
  const options = { timeout: LOOKUP_DEADLINE_MS, cacheMode: 'bypass' } as const
  return await withClient(
    send,
    url,
    { maxBytes: CONNECTION_MAX_BYTES, maxRequests },
    async (client) => (await client.listTools({}, options)).tools,
  )
}

/** Calls a tool of a server, in a connection of its own. */
export async function callMcpTool(send: SendLookup, { lookup, tool, args }: LookupCall): Promise<LookupAnswer> {
  const call = { name: tool.name, arguments: args }
  try {
    return await withClient(
      send,
      lookup.url,
      { maxBytes: MESSAGE_MAX_BYTES, maxRequests: MAX_REQUESTS },
      async (client) => {
        const { content, structuredContent, isError } = await client.callTool(call, { timeout: LOOKUP_DEADLINE_MS })
        const texts = content.map((part) => {
          if (part.type === 'text') return part.text
          if (part.type === 'resource' && 'text' in part.resource) return part.resource.text
          return `[${part.type}, which is no text]`
        })
        const isEmpty = texts.length === 0 && structuredContent !== undefined
        const bytes = Buffer.from(isEmpty ? JSON.stringify(structuredContent) : texts.join('\n'))
        const text = readLines(bytes, LOOKUP_ANSWER_MAX_BYTES) ?? ''
        const isCutOff = bytes.length > LOOKUP_ANSWER_MAX_BYTES
        const read = Math.min(bytes.length, LOOKUP_ANSWER_MAX_BYTES)
        return { ok: isError !== true, status: 200, content: text, bytes: read, isCutOff }
      },
    )
  } catch (error) {
    if (!(error instanceof McpError)) throw error
    return notAnswered(error.message)
  }
}

/**
 * Connects to a server by the official SDK, which is loaded only here, for its memory. Its requests go through the
 * client for outbound requests, to the URL of the look-up and no other.
 */
async function withClient<Result>(
  send: SendLookup,
  url: string,
  limits: Limits,
  use: (client: Client) => Promise<Result>,
): Promise<Result> {
  const sdk = await import('@modelcontextprotocol/client')
  const request = createFetch(send, url, limits)
  let failure: unknown
  let hasEnded = false
  const fetch: FetchLike = async (target, init) => {
    // The SDK aborts the end of a session, too, when connecting fails.
    if (hasEnded || (init?.signal?.aborted && init.method !== 'DELETE')) throw new McpError('The connection has ended.')
    try {
      return await request(target, init)
    } catch (error) {
      failure ??= error
      throw error
    }
  }
  const transport = new sdk.StreamableHTTPClientTransport(new URL(url), {
    fetch,
    redirectPolicy: 'follow',
    reconnectionOptions: {
      maxRetries: 0,
      initialReconnectionDelay: 1,
      maxReconnectionDelay: 1,
      reconnectionDelayGrowFactor: 1,
    },
  })
  const client = new sdk.Client(
    { name: 'workflow-service', version: '1' },
    { versionNegotiation: { mode: 'auto' }, listMaxPages: LIST_MAX_PAGES, jsonSchemaValidator: ACCEPT_ALL },
  )
  try {
    await client.connect(transport, { timeout: LOOKUP_DEADLINE_MS })
    return await use(client)
  } catch (error) {
    if (failure !== undefined) throw failure
    const message = error instanceof Error ? error.message : String(error)
    const isRefused = error instanceof sdk.ProtocolError
    const what = isRefused ? 'The server refused it' : 'The server did not answer as the Model Context Protocol says'
    throw new McpError(`${what}: ${readLines(Buffer.from(message), 300) ?? ''}`)
  } finally {
    // Also after an error: servers keep a session that is not ended.
    await transport.terminateSession().catch(() => {})
    hasEnded = true
    await client.close().catch(() => {})
  }
}

/** Accepts what a tool answers: the pattern of a server's schema could block the event loop. */
const ACCEPT_ALL: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
}

/** The bytes of one answer, and the requests of a connection. */
interface Limits {
  readonly maxBytes: number
  readonly maxRequests: number
}

/** Creates the `fetch` of a connection, within its limits. */
function createFetch(send: SendLookup, url: string, limits: Limits): FetchLike {
  let requestsLeft = limits.maxRequests
  let bytesLeft = CONNECTION_MAX_BYTES
  return async (target, init) => {
    const method = init?.method ?? 'GET'
    // A stream of messages that answer no request, which nothing here waits for.
    if (String(target) !== new URL(url).href || (method !== 'POST' && method !== 'DELETE'))
      return new Response(null, { status: 405 })
    const body = typeof init?.body === 'string' ? init.body : undefined
    const message = (body === undefined ? {} : JSON.parse(body)) as { id?: unknown; method?: unknown }
    // The SDK responds to requests of the server, which may make thousands in one answer: they get no response.
    if (method === 'POST' && message.method === undefined) return new Response(null, { status: 202 })
    if (requestsLeft === 0) throw new McpError(`The server needs more than ${limits.maxRequests} requests.`)
    requestsLeft -= 1
    const maxBytes = Math.min(limits.maxBytes, bytesLeft)
    const result = await send({
      url,
      method,
      headers: Object.fromEntries(new Headers(init?.headers)),
      ...(body === undefined ? {} : { body }),
      read: { maxBytes, isComplete: untilResponse(message.id) },
    })
    if (result.kind !== 'answered') throw new McpError(toSentence(result.detail))
    const { status, body: read } = result
    if (status >= 300 && status <= 399)
      throw new McpError(`The server answered ${status}, a redirect, which is not followed.`)
    // `Response` throws a RangeError for it, which would be an error of the service.
    if (status > 599) throw new McpError(`The server answered ${status}, which is no status of HTTP.`)
    if (!read) throw new McpError('The answer did not arrive in time.')
    bytesLeft = Math.max(0, bytesLeft - read.bytes.length)
    if (isCompressed(read.headers)) throw new McpError('The answer is compressed, although that was not asked for.')
    if (read.isCutOff && read.bytes.length >= maxBytes) {
      const what =
        bytesLeft === 0 ? `answers have more than ${CONNECTION_MAX_BYTES}` : `answer has more than ${maxBytes}`
      throw new McpError(`The ${what} bytes.`)
    }
    const response = onlyResponse(read, message.id)
    try {
      assertSimple(response, ANSWER_LIMITS)
    } catch (error) {
      throw new McpError(`The answer's ${describeError(error).message}`)
    }
    const { 'content-type': type, 'mcp-session-id': session } = read.headers
    const headers = {
      ...(type === undefined ? {} : { 'content-type': type }),
      ...(typeof session === 'string' ? { 'mcp-session-id': session } : {}),
    }
    const isEmpty = status < 200 || [204, 205, 304].includes(status)
    return new Response(isEmpty ? null : new Uint8Array(response), {
      status: Math.max(200, status),
      headers,
    })
  }
}

/**
 * Leaves out what a server sends besides the response: the SDK would process thousands of its requests without a pause.
 */
function onlyResponse({ bytes, headers: { 'content-type': type = '' } }: AnsweredBody, id: unknown): Buffer {
  if (id === undefined) return bytes
  const text = bytes.toString('latin1')
  if (!type.toLowerCase().startsWith('text/event-stream')) {
    if (/^(?:\xef\xbb\xbf)?\s*\[/.test(text)) throw new McpError('The answer is a list instead of one response.')
    return bytes
  }
  const events = text.split(EVENT_END, MAX_EVENTS + 1)
  const event = events.find((each) => isResponse(each, id))
  if (event === undefined && events.length > MAX_EVENTS) {
    throw new McpError(`The first ${MAX_EVENTS} events of the answer have no response.`)
  }
  return Buffer.from(event === undefined ? '' : `${event}\n\n`, 'latin1')
}

/**
 * Ends the reading of an event stream at the response to the request, since the server may leave the stream open, and
 * where it has more than MAX_EVENTS.
 */
export function untilResponse(id: unknown): NonNullable<ReadBody['isComplete']> {
  // An event that has not ended, in chunks: joined at its end, so that each byte is read once.
  let unfinished: string[] = []
  let tail = ''
  let eventsLeft = MAX_EVENTS
  return (chunk, { 'content-type': type = '' }) => {
    if (id === undefined || !type.toLowerCase().startsWith('text/event-stream')) return false
    const text = chunk.toString('latin1')
    unfinished.push(text)
    const searched = `${tail}${text}`
    tail = searched.slice(-3)
    if (!EVENT_END.test(searched)) return false
    const events = unfinished.join('').split(EVENT_END)
    unfinished = [events.pop() ?? '']
    tail = unfinished[0]!.slice(-3)
    eventsLeft -= events.length
    return eventsLeft < 0 || events.some((event) => isResponse(event, id))
  }
}

// A line ends with CRLF, LF or CR (WHATWG HTML, "Server-sent events").
const LINE_END = /\r\n|\n|\r/
const EVENT_END = /(?:\r\n|\n|\r(?!\n)){2}/

/** The data of an event; the stream may begin with a byte-order mark. */
function dataOf(event: string): string {
  const lines = event.replace(/^\xef\xbb\xbf/, '').split(LINE_END)
  return lines.flatMap((line) => (line.startsWith('data:') ? [line.slice(5)] : [])).join('\n')
}

function isResponse(event: string, id: unknown): boolean {
  try {
    const message = JSON.parse(dataOf(event)) as Record<string, unknown>
    return message['id'] === id && ('result' in message || 'error' in message)
  } catch {
    return false
  }
}
