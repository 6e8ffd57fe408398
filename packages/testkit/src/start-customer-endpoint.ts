import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { buffer } from 'node:stream/consumers'
import { parseJson } from '@workflow-service/contract'
import { close, listen, waitForRequestsIn } from './loopback-server.ts'

/** One request as it arrived. */
export type RecordedRequest = Awaited<ReturnType<typeof record>>

/** How to answer one request. */
export type Answer =
  /** An object as body is sent as JSON. The status is 200 with a body and 204 without one, unless given. */
  | { status?: number; headers?: Record<string, string>; body?: string | Buffer | object; delayMs?: number }
  /** A redirect to this Location, with status 302 unless given. */
  | { redirect: string; status?: number }
  /** Writes the response itself. */
  | { respond: (response: ServerResponse) => void | Promise<void> }
  /** Never answers; the connection stays open. */
  | 'hang'
  /** Closes the connection with RST. */
  | 'reset'

/** An answer, or a function of the request and the number of requests before it that returns one. */
export type AnswerSource = Answer | ((request: RecordedRequest, index: number) => Answer | Promise<Answer>)

export interface CustomerEndpointOptions {
  /** @default status 204 */
  answer?: AnswerSource
  /** Answers by path (without the query string); other paths get `answer`. */
  paths?: Record<string, AnswerSource>
  /**
   * False where requests arrive for hours: only `answer` sees them.
   * @default true
   */
  keepsRequests?: boolean
  /**
   * Serves HTTPS with this certificate.
   * @default HTTP
   */
  tls?: { key: string; cert: string }
  /** @default a free port */
  port?: number
}

/** A customer's endpoint: records each request and answers as the test asks. */
export type CustomerEndpoint = Awaited<ReturnType<typeof startCustomerEndpoint>>

/** Starts an HTTP or HTTPS server in the role of a customer's endpoint. */
export async function startCustomerEndpoint(options: CustomerEndpointOptions = {}) {
  const requests: RecordedRequest[] = []
  let answer: AnswerSource = options.answer ?? { status: 204 }
  let connections = 0
  let received = 0
  const handle = async (incoming: IncomingMessage, response: ServerResponse) => {
    const request = await record(incoming)
    // Tests empty `requests` between their cases.
    const index = options.keepsRequests === false ? received++ : requests.push(request) - 1
    const chosen = options.paths?.[request.path.split('?')[0] ?? ''] ?? answer
    await send(response, typeof chosen === 'function' ? await chosen(request, index) : chosen)
  }
  const listener = (incoming: IncomingMessage, response: ServerResponse) => {
    // A client may disconnect. An error in the test's own answer function must not go unnoticed.
    handle(incoming, response).catch((error: unknown) => {
      if (!incoming.destroyed || !response.destroyed) response.writeHead(599).end(String(error))
    })
  }
  const server = options.tls ? createTlsServer(options.tls, listener) : createServer(listener)
  server.on('connection', () => connections++)
  server.on('tlsClientError', () => {})
  const port = await listen(server, options.port)
  return {
    /** Without a trailing slash. */
    url: `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    port,
    requests,
    /** The number of connections so far. */
    get connections() {
      return connections
    },
    /** Forgets the requests, and answers 204 again. */
    reset() {
      requests.length = 0
      answer = { status: 204 }
    },
    /** Answers the following requests with this. */
    answerWith(nextAnswer: AnswerSource) {
      answer = nextAnswer
    },
    waitForRequests: waitForRequestsIn(requests, "the customer's endpoint"),
    /** Closes the server and every connection. */
    close: () => close(server),
    [Symbol.asyncDispose]: () => close(server),
  }
}

async function record(incoming: IncomingMessage) {
  const body = await buffer(incoming)
  const text = body.toString('utf8')
  return {
    method: incoming.method ?? '',
    /** With the query string. */
    path: incoming.url ?? '',
    headers: incoming.headers,
    /** Alternating names and values, in the order and spelling of the request. */
    rawHeaders: incoming.rawHeaders,
    body,
    text,
    /** The parsed body; undefined when it is not JSON. */
    json: parseJson(text),
    /** When the body was complete, in milliseconds since 1970. */
    receivedAt: Date.now(),
    /** The client's port, which identifies the connection. */
    remotePort: incoming.socket.remotePort ?? 0,
  }
}

async function send(response: ServerResponse, answer: Answer): Promise<void> {
  if (answer === 'hang') return
  if (answer === 'reset') return void response.socket?.resetAndDestroy()
  if ('respond' in answer) return await answer.respond(response)
  if ('redirect' in answer) return void response.writeHead(answer.status ?? 302, { location: answer.redirect }).end()
  const { status = answer.body === undefined ? 204 : 200, headers = {}, body, delayMs = 0 } = answer
  if (delayMs > 0) await new Promise((done) => setTimeout(done, delayMs).unref())
  if (typeof body === 'object' && !Buffer.isBuffer(body)) {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  } else {
    response.writeHead(status, headers).end(body)
  }
}
