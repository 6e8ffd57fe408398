import type { Answer, RecordedRequest } from './start-customer-endpoint.ts'

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
 * Speaks the Model Context Protocol (2025-06-18) over HTTP, as much as servers with tools do: the `answer` of a
 * customer endpoint. With `isStream`, answers are events of a stream that stays open, after the messages in `before`.
 */
export function mcpHandler(
  tools: () => readonly McpTool[],
  call: (name: string, args: Record<string, unknown>) => McpAnswer,
  {
    isStream = false,
    before = [],
    nextCursor,
  }: { readonly isStream?: boolean; readonly before?: readonly object[]; readonly nextCursor?: () => string } = {},
) {
  return ({ method, json, headers }: RecordedRequest): Answer => {
    if (method !== 'POST') return { status: method === 'DELETE' ? 204 : 405 }
    const message = json as { id?: number; method: string; params?: Record<string, never> }
    const { id, method: called, params = {} } = message
    if (id === undefined) return { status: 202 }
    if (called !== 'initialize' && headers['mcp-session-id'] !== 's-1') return { status: 400 }
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
    const body = { jsonrpc: '2.0', id, ...answer }
    const session = { 'mcp-session-id': 's-1' }
    if (!isStream) return { headers: session, body }
    const events = [...before, body].map((each) => `event: message\ndata: ${JSON.stringify(each)}\n\n`)
    return {
      respond: (response) =>
        void response.writeHead(200, { 'content-type': 'text/event-stream', ...session }).write(events.join('')),
    }
  }
}

/**
 * Speaks the version of 2026-07-28, in which a client reads the list of tools when the server refuses the
 * headers of a call, and repeats the call.
 */
export function modernMcpHandler(tools: readonly McpTool[], structuredContent: object) {
  let isListed = false
  return ({ json }: RecordedRequest): Answer => {
    const { id, method } = json as { id: number; method: string }
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
    return { status: isRefused ? 400 : 200, body: { jsonrpc: '2.0', id, ...answer } }
  }
}
