import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PAYLOAD_MAX_BYTES } from '@workflow-service/contract'
import { checkServiceToken, SERVICE_TOKEN_HEADER, type ServiceTokenCheck } from '@workflow-service/webhook-token'

/** A payload request as the endpoint received it, the token check's result, and the response. */
export interface ReceivedWebhook {
  readonly url: string
  readonly method: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
  readonly receivedAt: Date
  readonly token: ServiceTokenCheck
  readonly response: { readonly status: number; readonly text: string }
}

/** An HTTP endpoint such as a customer runs: it checks the token and accepts orders. */
export type DemoEndpoint = Awaited<ReturnType<typeof startDemoEndpoint>>

/** The id of the demo's webhook source in demo.yaml is part of the path, so that no other endpoint has the same URL. */
const PATH = '/orders/c5d0b8a2-61f4-4c0b-8a55-2a8f0f1d7e21'

/**
 * Starts the endpoint on 127.0.0.1, on `port` if that is free, else on any free port. Calls `onWebhook` for each
 * payload request and for each request with a wrong token, not for verification requests.
 */
export async function startDemoEndpoint(options: {
  port: number
  secret: string
  onWebhook: (webhook: ReceivedWebhook) => void
}) {
  const server = createServer((request, response) => {
    handle(request, response, options).catch(() => response.destroy())
  })
  await listen(server, options.port).catch(async () => await listen(server, 0))
  const { port } = server.address() as AddressInfo
  return {
    url: toUrl(port),
    port,
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
}

function toUrl(port: number): string {
  return `http://127.0.0.1:${port}${PATH}`
}

/** Whether the URL is that of the demo's endpoint, on any port. */
export function isDemoEndpoint(url: string): boolean {
  return url === toUrl(Number(URL.parse(url)?.port))
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  { secret, onWebhook }: { secret: string; onWebhook: (webhook: ReceivedWebhook) => void },
): Promise<void> {
  const receivedAt = new Date()
  const body = await readBody(request)
  if (body === undefined) return
  const token = await checkServiceToken(request.headersDistinct[SERVICE_TOKEN_HEADER.toLowerCase()], secret)
  const payload = parse(body)
  if (token.ok && payload?.['type'] === 'service.webhook.verification') {
    response.writeHead(204).end()
    return
  }
  const answer = token.ok ? acceptOrder(payload) : { status: 401, text: `The token is not valid: ${token.reason}.` }
  response.writeHead(answer.status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(answer.text)
  const { port } = request.socket.address() as AddressInfo
  const headers = toPairs(request.rawHeaders)
  onWebhook({ url: toUrl(port), method: request.method ?? '', headers, body, receivedAt, token, response: answer })
}

/** Reads a body of at most the size of a payload. Closes the connection of a longer one, and resolves to undefined. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > PAYLOAD_MAX_BYTES) {
      request.socket.destroy()
      return undefined
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function acceptOrder(payload: Record<string, unknown> | undefined): ReceivedWebhook['response'] {
  const id = payload?.['order_id']
  return typeof id === 'string' && id !== ''
    ? { status: 200, text: `Order ${id} accepted.` }
    : { status: 422, text: 'An order needs an order_id.' }
}

function parse(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function toPairs(rawHeaders: readonly string[]): [string, string][] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, index) => [
    rawHeaders[2 * index] ?? '',
    rawHeaders[2 * index + 1] ?? '',
  ])
}
