import type { ServerResponse } from 'node:http'
import { type RecordedRequest, startCustomerEndpoint } from './start-customer-endpoint.ts'

type LookupRequest = Pick<RecordedRequest, 'method' | 'headers'> & {
  readonly url: string
  readonly body: string
}

export type LookupHandler = (request: LookupRequest, response: ServerResponse) => void

/** Starts a server on loopback that a look-up reads from. */
export async function startLookupServer(handler: LookupHandler) {
  const requests: LookupRequest[] = []
  const { url: origin, close } = await startCustomerEndpoint({
    answer({ method, path: url, headers, text: body }) {
      const request = { method, url, headers, body }
      requests.push(request)
      return { respond: (response) => handler(request, response) }
    },
  })
  const end = (): void => void close()
  return { url: origin, requests, close: end, [Symbol.dispose]: end }
}

interface McpTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema: object
  readonly annotations?: object
  readonly outputSchema?: object
}

/** What an MCP server answers to a call of a tool. */
export type McpAnswer = { readonly content: readonly object[]; readonly isError?: boolean }

/**
 * Speaks the Model Context Protocol (2025-06-18) over HTTP, as much as servers with tools do. With `isStream`, answers
 * are events of a stream that stays open, after the messages in `before`.
 */
export function mcpHandler(
  tools: () => readonly McpTool[],
  call: (name: string, args: Record<string, unknown>) => McpAnswer,
  {
    isStream = false,
    before = [],
    nextCursor,
  }: { readonly isStream?: boolean; readonly before?: readonly object[]; readonly nextCursor?: () => string } = {},
): LookupHandler {
  return ({ method, body, headers }, response) => {
    if (method !== 'POST') {
      response.writeHead(method === 'DELETE' ? 204 : 405).end()
      return
    }
    const message = JSON.parse(body) as { id?: number; method: string; params?: Record<string, never> }
    const { id, method: called, params = {} } = message
    if (id === undefined || (called !== 'initialize' && headers['mcp-session-id'] !== 's-1')) {
      response.writeHead(id === undefined ? 202 : 400).end()
      return
    }
    const results: Record<string, () => object> = {
      initialize: () => ({
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 'stub', version: '1' },
      }),
      'tools/list': () => ({ tools: tools(), ...(nextCursor ? { nextCursor: nextCursor() } : {}) }),
      'tools/call': () => call(String(params['name']), params['arguments'] ?? {}),
    }
    const { [called]: result } = results
    const answer = result ? { result: result() } : { error: { code: -32601, message: 'Method not found' } }
    const answered = JSON.stringify({ jsonrpc: '2.0', id, ...answer })
    const type = isStream ? 'text/event-stream' : 'application/json'
    response.writeHead(200, { 'content-type': type, 'mcp-session-id': 's-1' })
    const events = [...before.map((each) => JSON.stringify(each)), answered]
    if (isStream) response.write(events.map((each) => `event: message\ndata: ${each}\n\n`).join(''))
    else response.end(answered)
  }
}

/**
 * Speaks the version of 2026-07-28, in which a client reads the list of tools when the server refuses the
 * headers of a call, and repeats the call.
 */
export function modernMcpHandler(tools: readonly McpTool[], structuredContent: object): LookupHandler {
  let isListed = false
  return ({ body }, response) => {
    const { id, method } = JSON.parse(body) as { id: number; method: string }
    isListed ||= method === 'tools/list'
    const cache = { ttlMs: 0, cacheScope: 'private' }
    const capabilities = { tools: {} }
    const results: Record<string, object> = {
      'server/discover': { ...cache, supportedVersions: ['2026-07-28'], capabilities },
      'tools/list': { ...cache, tools },
      'tools/call': { content: [], structuredContent },
    }
    const isRefused = method === 'tools/call' && !isListed
    const answer = isRefused
      ? { error: { code: -32020, message: 'Header mismatch' } }
      : { result: { resultType: 'complete', ...results[method] } }
    response.writeHead(isRefused ? 400 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
  }
}
