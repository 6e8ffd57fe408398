import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'
import { checkServiceToken, serviceTokenHeader, type ServiceTokenCheck } from '@workflow-service/webhook-token'

/** A payload request as it arrived, and what the endpoint made of it. */
export interface ArrivedWebhook {
  readonly url: string
  readonly method: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
  readonly receivedAt: Date
  readonly token: ServiceTokenCheck
  readonly answer: { readonly status: number; readonly text: string }
}

/** What a customer would run: an HTTP endpoint that checks the token and takes orders. */
export interface DemoEndpoint {
  readonly url: string
  readonly port: number
  close(): Promise<void>
}

const PATH = '/orders'

/** Listens on 127.0.0.1, on `port` when it is free. `onWebhook` hears of each payload request, not of verifications. */
export async function startDemoEndpoint(options: {
  port: number
  secret: string
  onWebhook: (webhook: ArrivedWebhook) => void
}): Promise<DemoEndpoint> {
  const server = createServer((request, response) => {
    take(request, response, options).catch(() => response.destroy())
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

/** Whether the demo's endpoint may have listened there at some time. */
export function isDemoEndpoint(url: string): boolean {
  const { port } = new URL(url)
  return toUrl(Number(port)) === url
}

async function take(
  request: IncomingMessage,
  response: ServerResponse,
  { secret, onWebhook }: { secret: string; onWebhook: (webhook: ArrivedWebhook) => void },
): Promise<void> {
  const receivedAt = new Date()
  const body = await readText(request)
  const token = checkServiceToken(request.headersDistinct[serviceTokenHeader.toLowerCase()], secret)
  const payload = parse(body)
  if (token.ok && payload?.['type'] === 'service.webhook.verification') {
    response.writeHead(204).end()
    return
  }
  const answer = token.ok ? takeOrder(payload) : { status: 401, text: `The token is not good: ${token.reason}.` }
  response.writeHead(answer.status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(answer.text)
  const { port } = request.socket.address() as AddressInfo
  const headers = toPairs(request.rawHeaders)
  onWebhook({ url: toUrl(port), method: request.method ?? '', headers, body, receivedAt, token, answer })
}

function takeOrder(payload: Record<string, unknown> | undefined): ArrivedWebhook['answer'] {
  const id = payload?.['order_id']
  return typeof id === 'string' && id !== ''
    ? { status: 200, text: `Order ${id} is in.` }
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
  return Array.from({ length: rawHeaders.length / 2 }, (_, place) => [
    rawHeaders[2 * place] ?? '',
    rawHeaders[2 * place + 1] ?? '',
  ])
}
