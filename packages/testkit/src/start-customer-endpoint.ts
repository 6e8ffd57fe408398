import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { waitUntil } from '@workflow-service/dev-servers'

/** One request as it arrived. */
export interface RecordedRequest {
  method: string
  /** With the query. */
  path: string
  headers: IncomingHttpHeaders
  /** Names and values in turn, in the order and spelling sent. */
  rawHeaders: string[]
  body: Buffer
  text: string
  /** The parsed body; undefined when it is no JSON. */
  json: unknown
  /** Unix time in milliseconds when the body was complete. */
  receivedAt: number
  /** The client's port: differs between connections. */
  remotePort: number
}

/** What to answer; default status 204 without body. An object as body is sent as JSON. */
export type Answer =
  | { status?: number; headers?: Record<string, string>; body?: string | Buffer | object; delayMs?: number }
  /** A 3xx with this Location; default 302. */
  | { redirect: string; status?: number }
  /** Never answers; the connection stays open. */
  | 'hang'
  /** Closes the connection with RST. */
  | 'reset'

/** An answer, or what makes one from the request and the number of requests before it. */
export type Answering = Answer | ((request: RecordedRequest, index: number) => Answer | Promise<Answer>)

/** How the endpoint answers and where it listens. */
export interface CustomerEndpointOptions {
  answer?: Answering
  /** Answers by path (without the query); others get `answer`. */
  paths?: Record<string, Answering>
  /** Serve HTTPS with this certificate. */
  tls?: { key: string; cert: string }
  /** Default 127.0.0.1. */
  host?: string
  /** Default: a free one. */
  port?: number
}

/** A customer's endpoint, which records what it gets and answers as told. */
export interface CustomerEndpoint {
  /** Without a slash at the end. */
  url: string
  port: number
  requests: RecordedRequest[]
  /** How many connections were opened so far. */
  readonly connections: number
  /** Changes what the next requests get. */
  answerWith: (answer: Answering) => void
  /** The first `count` requests, once there are so many; rejects after the timeout, default 10,000. */
  waitForRequests: (count: number, timeoutMs?: number) => Promise<RecordedRequest[]>
  /** Closes every connection. */
  close: () => Promise<void>
}

/** Starts an HTTP server on 127.0.0.1 that plays a customer's endpoint. */
export async function startCustomerEndpoint(options: CustomerEndpointOptions = {}): Promise<CustomerEndpoint> {
  const requests: RecordedRequest[] = []
  let answering = options.answer ?? { status: 204 }
  let connections = 0
  const handle = async (incoming: IncomingMessage, response: ServerResponse) => {
    const request = await record(incoming)
    const index = requests.push(request) - 1
    const chosen = options.paths?.[request.path.split('?')[0] ?? ''] ?? answering
    await send(response, typeof chosen === 'function' ? await chosen(request, index) : chosen)
  }
  const listener = (incoming: IncomingMessage, response: ServerResponse) => {
    // A client that goes away is none of the endpoint's business; a fault in the test's own function must be seen.
    handle(incoming, response).catch((error: unknown) => {
      if (!incoming.destroyed || !response.destroyed) response.writeHead(599).end(String(error))
    })
  }
  const server = options.tls ? createTlsServer(options.tls, listener) : createServer(listener)
  server.on('connection', () => connections++)
  server.on('tlsClientError', () => {})
  server.listen(options.port ?? 0, options.host ?? '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `${options.tls ? 'https' : 'http'}://${options.host ?? '127.0.0.1'}:${port}`,
    port,
    requests,
    get connections() {
      return connections
    },
    answerWith(answer) {
      answering = answer
    },
    async waitForRequests(count, timeoutMs = 10_000) {
      const message = () => `${count} requests at the customer's endpoint; ${requests.length} came`
      await waitUntil(() => requests.length >= count, { timeoutMs, message })
      return requests.slice(0, count)
    },
    async close() {
      if (!server.listening) return
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function record(incoming: IncomingMessage): Promise<RecordedRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  const text = body.toString('utf8')
  return {
    method: incoming.method ?? '',
    path: incoming.url ?? '',
    headers: incoming.headers,
    rawHeaders: incoming.rawHeaders,
    body,
    text,
    json: parse(text),
    receivedAt: Date.now(),
    remotePort: incoming.socket.remotePort ?? 0,
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function send(response: ServerResponse, answer: Answer): Promise<void> {
  if (answer === 'hang') return
  if (answer === 'reset') return void response.socket?.resetAndDestroy()
  if ('redirect' in answer) return void response.writeHead(answer.status ?? 302, { location: answer.redirect }).end()
  const { status = answer.body === undefined ? 204 : 200, headers = {}, body, delayMs = 0 } = answer
  if (delayMs > 0) await new Promise((done) => setTimeout(done, delayMs).unref())
  if (typeof body === 'object' && !Buffer.isBuffer(body)) {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  } else {
    response.writeHead(status, headers).end(body)
  }
}
