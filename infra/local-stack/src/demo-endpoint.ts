import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { isJsonObject, parseJson } from '@workflow-service/contract'
import { checkServiceToken, SERVICE_TOKEN_HEADER } from '@workflow-service/webhook-token'

/** A payload request with a valid token as the endpoint received it, and the response. */
export interface ReceivedWebhook {
  readonly url: string
  /** Lines, in the order and spelling of the request. */
  readonly headers: readonly string[]
  readonly requestId: string | undefined
  readonly body: string
  readonly receivedAt: Date
  readonly response: { readonly status: number; readonly text: string }
}

/** An HTTP endpoint such as a customer runs: it checks the token and accepts orders. */
export type DemoEndpoint = Awaited<ReturnType<typeof startDemoEndpoint>>

/** The id of the demo's webhook source in demo.yaml is part of the path, so that no other endpoint has the same URL. */
const PATH = '/orders/c5d0b8a2-61f4-4c0b-8a55-2a8f0f1d7e21'

/**
 * Starts the endpoint on 127.0.0.1, on `port` if that is free, else on any free port. Calls `onWebhook` for each
 * payload request with a valid token, not for verification requests.
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
  const body = await text(request)
  const token = await checkServiceToken(request.headersDistinct[SERVICE_TOKEN_HEADER.toLowerCase()], secret)
  const payload = parseJson(body)
  if (!token.ok) return void response.writeHead(401).end(`The token is not valid: ${token.reason}.`)
  if (isJsonObject(payload) && payload['type'] === 'service.webhook.verification') {
    response.writeHead(204).end()
    return
  }
  const answer = acceptOrder(payload)
  response.writeHead(answer.status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(answer.text)
  const { port } = request.socket.address() as AddressInfo
  const { rawHeaders } = request
  const headers = rawHeaders.flatMap((name, index) => (index % 2 === 0 ? `${name}: ${rawHeaders[index + 1]}` : []))
  const [requestId] = request.headersDistinct['x-request-id'] ?? []
  onWebhook({ url: toUrl(port), headers, requestId, body, receivedAt, response: answer })
}

function acceptOrder(payload: unknown): ReceivedWebhook['response'] {
  const id = isJsonObject(payload) ? payload['order_id'] : undefined
  return typeof id === 'string' && id !== ''
    ? { status: 200, text: `Order ${id} accepted.` }
    : { status: 422, text: 'An order needs an order_id.' }
}
