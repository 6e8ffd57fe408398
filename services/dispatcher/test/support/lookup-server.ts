import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface LookupRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export type LookupHandler = (request: LookupRequest, response: ServerResponse) => void

/** Starts a server on loopback that a look-up reads from. */
export async function startLookupServer(handler: LookupHandler) {
  const requests: LookupRequest[] = []
  const server = createServer((incoming, response) => {
    void (async () => {
      let body = ''
      for await (const chunk of incoming.setEncoding('utf8')) body += String(chunk)
      const { method = '', url = '', headers } = incoming
      requests.push({ method, url, headers, body })
      handler(requests.at(-1)!, response)
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = (): void => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests, close }
}

interface McpTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema: object
  readonly annotations?: object
}

/** What an MCP server answers to a call of a tool. */
export type McpAnswer = { readonly content: readonly object[]; readonly isError?: boolean }

/**
 * Speaks the Model Context Protocol (2025-06-18) over HTTP, as much as servers with tools do. With `isStream`, answers
 * are events of a stream that stays open.
 */
export function mcpHandler(
  tools: () => readonly McpTool[],
  call: (name: string, args: Record<string, unknown>) => McpAnswer,
  { isStream = false }: { readonly isStream?: boolean } = {},
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
      'tools/list': () => ({ tools: tools() }),
      'tools/call': () => call(String(params['name']), params['arguments'] ?? {}),
    }
    const { [called]: result } = results
    const answer = result ? { result: result() } : { error: { code: -32601, message: 'Method not found' } }
    const text = JSON.stringify({ jsonrpc: '2.0', id, ...answer })
    const type = isStream ? 'text/event-stream' : 'application/json'
    response.writeHead(200, { 'content-type': type, 'mcp-session-id': 's-1' })
    if (isStream) response.write(`event: message\ndata: ${text}\n\n`)
    else response.end(text)
  }
}
