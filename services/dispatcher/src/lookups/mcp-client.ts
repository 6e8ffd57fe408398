import { LOOKUP_ANSWER_MAX_BYTES, LOOKUP_DEADLINE_MS } from '@workflow-service/contract'
import type { Client, FetchLike, ListToolsResult } from '@modelcontextprotocol/client'
import { isCompressed, readLines } from '../outbound/answer-text.ts'
import type { ReadBody } from '../outbound/send-request.ts'
import { type LookupAnswer, type LookupCall, notAnswered, type SendLookup, toSentence } from './lookup-answer.ts'

/** A message around the text of a tool, in which characters may be escaped. */
const MESSAGE_MAX_BYTES = 4 * LOOKUP_ANSWER_MAX_BYTES
/** A list of tools with the schemas of their arguments. */
const TOOL_LIST_MAX_BYTES = 1_048_576

/** The server did not answer as the protocol says. The message is a sentence. */
export class McpError extends Error {
  override name = 'McpError'
}

/** Lists the tools of a server. @throws McpError */
export async function listMcpTools(send: SendLookup, url: string): Promise<ListToolsResult['tools']> {
  const options = { timeout: LOOKUP_DEADLINE_MS }
  return await withClient(send, url, TOOL_LIST_MAX_BYTES, async (client) => (await client.listTools({}, options)).tools)
}

/** Calls a tool of a server, in a connection of its own. */
export async function callMcpTool(send: SendLookup, { lookup, tool, args }: LookupCall): Promise<LookupAnswer> {
  const call = { name: tool.name, arguments: args }
  try {
    return await withClient(send, lookup.url, MESSAGE_MAX_BYTES, async (client) => {
      const { content, structuredContent, isError } = await client.callTool(call, { timeout: LOOKUP_DEADLINE_MS })
      const texts = content.map((part) => (part.type === 'text' ? part.text : `[${part.type}, which is no text]`))
      const isEmpty = texts.length === 0 && structuredContent !== undefined
      const bytes = Buffer.from(isEmpty ? JSON.stringify(structuredContent) : texts.join('\n'))
      const text = readLines(bytes, LOOKUP_ANSWER_MAX_BYTES) ?? ''
      const isCutOff = bytes.length > LOOKUP_ANSWER_MAX_BYTES
      const read = Math.min(bytes.length, LOOKUP_ANSWER_MAX_BYTES)
      return { ok: isError !== true, status: 200, content: text, bytes: read, isCutOff }
    })
  } catch (error) {
    if (!(error instanceof McpError)) throw error
    return notAnswered(error.message)
  }
}

/**
 * Connects to a server by the official SDK, which is loaded here: it takes 33 MiB of memory. Its requests go through
 * the client for outbound requests, to the URL of the look-up and no other.
 */
async function withClient<Result>(
  send: SendLookup,
  url: string,
  maxBytes: number,
  use: (client: Client) => Promise<Result>,
): Promise<Result> {
  const sdk = await import('@modelcontextprotocol/client')
  let failure: unknown
  const fetch: FetchLike = async (target, init) => {
    try {
      return await request(send, { url, target: String(target), init, maxBytes })
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
  const client = new sdk.Client({ name: 'workflow-service', version: '1' }, { versionNegotiation: { mode: 'auto' } })
  try {
    await client.connect(transport, { timeout: LOOKUP_DEADLINE_MS })
    const result = await use(client)
    await transport.terminateSession().catch(() => {})
    return result
  } catch (error) {
    if (failure !== undefined && !(failure instanceof McpError)) throw failure
    if (failure !== undefined) throw failure
    const message = error instanceof Error ? error.message : String(error)
    throw new McpError(
      `The server did not answer as the Model Context Protocol says: ${readLines(Buffer.from(message), 300) ?? ''}`,
    )
  } finally {
    await client.close().catch(() => {})
  }
}

async function request(
  send: SendLookup,
  { url, target, init, maxBytes }: { url: string; target: string; init: RequestInit | undefined; maxBytes: number },
): Promise<Response> {
  const method = init?.method ?? 'GET'
  // A stream of messages that answer no request, which nothing here waits for.
  if (target !== new URL(url).href || (method !== 'POST' && method !== 'DELETE'))
    return new Response(null, { status: 405 })
  const body = typeof init?.body === 'string' ? init.body : undefined
  const result = await send({
    url,
    method,
    headers: Object.fromEntries(new Headers(init?.headers)),
    ...(body === undefined ? {} : { body }),
    read: { maxBytes, isComplete: untilResponse(body) },
  })
  if (result.kind !== 'answered') throw new McpError(toSentence(result.detail))
  const { status, body: read } = result
  if (status >= 300 && status <= 399)
    throw new McpError(`The server answered ${status}, a redirect, which is not followed.`)
  if (!read) throw new McpError('The answer did not arrive in time.')
  if (isCompressed(read.headers)) throw new McpError('The answer is compressed, although that was not asked for.')
  if (read.isCutOff && read.bytes.length >= maxBytes) throw new McpError(`The answer has more than ${maxBytes} bytes.`)
  const { 'content-type': type, 'mcp-session-id': session } = read.headers
  const headers = {
    ...(type === undefined ? {} : { 'content-type': type }),
    ...(typeof session === 'string' ? { 'mcp-session-id': session } : {}),
  }
  const isEmpty = status < 200 || [204, 205, 304].includes(status)
  return new Response(isEmpty ? null : new Uint8Array(read.bytes), { status: Math.max(200, status), headers })
}

/** Ends the reading of an event stream at the response to the request: the server may leave the stream open. */
function untilResponse(body: string | undefined): ReadBody['isComplete'] {
  const { id } = (body === undefined ? {} : JSON.parse(body)) as { id?: unknown }
  let rest = ''
  return (chunk, { 'content-type': type = '' }) => {
    if (id === undefined || !type.toLowerCase().startsWith('text/event-stream')) return false
    const events = `${rest}${chunk.toString('latin1')}`.split(/\r?\n\r?\n/)
    rest = events.pop() ?? ''
    return events.some((event) => isResponse(event, id))
  }
}

function isResponse(event: string, id: unknown): boolean {
  const data = event.split(/\r?\n/).flatMap((line) => (line.startsWith('data:') ? [line.slice(5)] : []))
  try {
    const message = JSON.parse(data.join('\n')) as Record<string, unknown>
    return message['id'] === id && ('result' in message || 'error' in message)
  } catch {
    return false
  }
}
