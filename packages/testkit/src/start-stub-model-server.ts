import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { anthropicProtocol } from './stub-model/anthropic-protocol.ts'
import { openAiProtocol } from './stub-model/openai-protocol.ts'
import type { ModelAnswer, ModelFailure, ModelProtocol, ModelRequest, ModelTurn } from './stub-model/turn.ts'
import { waitUntil } from '@workflow-service/dev-servers'

export type { ModelAnswer, ModelFailure, ModelRequest, ModelToolCall, ModelTurn } from './stub-model/turn.ts'

/** A model provider whose answers the test scripts. */
export interface StubModelServer {
  /** A value for `AGENT_BASE_URL`, for both protocols; ends in /v1. */
  baseUrl: string
  requests: ModelRequest[]
  /** Appends turns to the script. */
  script: (...turns: ModelTurn[]) => void
  /** The number of turns that no request has taken yet. */
  readonly left: number
  /**
   * Waits until there are `count` requests and resolves to the first `count`. Rejects after `timeoutMs`.
   * @default 10_000
   */
  waitForRequests: (count: number, timeoutMs?: number) => Promise<ModelRequest[]>
  close: () => Promise<void>
}

/**
 * Starts a server for OpenAI's chat completions (`POST /v1/chat/completions`) and Anthropic's messages
 * (`POST /v1/messages`), with and without streaming. Each request takes the next turn of the script. After the last turn it
 * gets `otherwise`, or a 400, which no client retries.
 */
export async function startStubModelServer(
  options: { turns?: ModelTurn[]; otherwise?: ModelTurn } = {},
): Promise<StubModelServer> {
  const turns = [...(options.turns ?? [])]
  const requests: ModelRequest[] = []
  const handle = async (incoming: IncomingMessage, response: ServerResponse) => {
    const protocol = protocolOf(incoming)
    if (!protocol) {
      response.writeHead(404).end()
      return
    }
    const request = await readRequest(incoming, protocol)
    const index = requests.push(request) - 1
    const turn = turns.shift() ?? options.otherwise ?? OUT_OF_TURNS
    await answer(response, protocol, request, typeof turn === 'function' ? await turn(request, index) : turn)
  }
  const server = createServer((incoming, response) => {
    handle(incoming, response).catch((error: unknown) => response.writeHead(599).end(String(error)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    script: (...more) => void turns.push(...more),
    get left() {
      return turns.length
    },
    async waitForRequests(count, timeoutMs = 10_000) {
      const message = () => `${count} requests at the model; ${requests.length} arrived`
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

const OUT_OF_TURNS: ModelAnswer = { failure: 'status', status: 400, message: 'The stub model has no turn left' }

function protocolOf({ method, url }: IncomingMessage): ModelProtocol | undefined {
  if (method !== 'POST') return undefined
  if (url === '/v1/chat/completions') return openAiProtocol
  if (url === '/v1/messages') return anthropicProtocol
  return undefined
}

async function readRequest(incoming: IncomingMessage, protocol: ModelProtocol): Promise<ModelRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>
  return {
    protocol: protocol.name,
    path: incoming.url ?? '',
    headers: incoming.headers,
    body,
    isStreaming: body['stream'] === true,
    receivedAt: Date.now(),
  }
}

async function answer(
  response: ServerResponse,
  protocol: ModelProtocol,
  request: ModelRequest,
  turn: ModelAnswer,
): Promise<void> {
  if ('failure' in turn) {
    answerWithFailure(response, protocol, turn)
    return
  }
  if (turn.delayMs) await new Promise((done) => setTimeout(done, turn.delayMs).unref())
  const type = request.isStreaming ? 'text/event-stream' : 'application/json'
  const text = request.isStreaming ? protocol.stream(turn, request) : JSON.stringify(protocol.whole(turn, request))
  response.writeHead(200, { 'content-type': type })
  if (!turn.isCutOff) {
    response.end(text)
    return
  }
  // Half of the answer, then a reset before the end of the chunked body.
  response.write(text.slice(0, Math.floor(text.length / 2)), () => response.socket?.resetAndDestroy())
}

function answerWithFailure(response: ServerResponse, protocol: ModelProtocol, turn: ModelFailure): void {
  if (turn.failure === 'hang') return
  if (turn.failure === 'custom') {
    turn.respond(response)
    return
  }
  if (turn.failure === 'reset') {
    response.socket?.resetAndDestroy()
    return
  }
  const headers = turn.retryAfterSeconds === undefined ? {} : { 'retry-after': String(turn.retryAfterSeconds) }
  const body = turn.body ?? JSON.stringify(protocol.errorBody(turn.status, turn.message ?? 'scripted failure'))
  response.writeHead(turn.status, { 'content-type': 'application/json', ...headers }).end(body)
}
