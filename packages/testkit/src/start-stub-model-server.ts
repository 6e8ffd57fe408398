import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { waitForRequestsIn } from './loopback-server.ts'
import { type Answer, type RecordedRequest, startCustomerEndpoint } from './start-customer-endpoint.ts'
import { anthropicMessages } from './stub-model/anthropic-messages.ts'
import { bedrockConverse } from './stub-model/bedrock-converse.ts'
import { checkRequest } from './stub-model/check-request.ts'
import { googleGenerateContent } from './stub-model/google-generate-content.ts'
import { openAiChat } from './stub-model/openai-chat.ts'
import { openAiResponses } from './stub-model/openai-responses.ts'
import {
  type ModelAnswer,
  type ModelFailure,
  type ModelProtocol,
  type ModelRequest,
  type ModelSpeech,
  type ModelTurn,
  toServerSentEvents,
} from './stub-model/turn.ts'

/** A model provider whose answers the test scripts. */
export type StubModelServer = Awaited<ReturnType<typeof startStubModelServer>>

/**
 * Starts a server that speaks OpenAI's Responses and Chat Completions, Anthropic's Messages, Google's generateContent
 * and Amazon Bedrock's Converse, with and without streaming. It rejects tools, texts and orders of messages that one of
 * the real APIs rejects (`violations`), and such a request takes no turn. Each other request takes the next turn of the
 * script. After the last turn it gets `otherwise`, or a 400, which no client retries.
 */
export async function startStubModelServer(options: { turns?: ModelTurn[]; otherwise?: ModelTurn } = {}) {
  const turns = [...(options.turns ?? [])]
  const requests: ModelRequest[] = []
  const violations: string[] = []
  const handle = async (incoming: RecordedRequest): Promise<Answer> => {
    const protocol = PROTOCOLS.find(({ path }) => path.test(incoming.path))
    if (incoming.method !== 'POST' || !protocol) return { status: 404 }
    const request = toRequest(incoming, protocol)
    const index = requests.push(request) - 1
    const { keyHeaders } = protocol
    if (keyHeaders && !keyHeaders.some((name) => request.headers[name])) {
      return toAnswer(protocol, request, { failure: 'status', status: 401 })
    }
    try {
      request.conversation = checkRequest(protocol.read(request), protocol)
    } catch (error) {
      const { message } = error as Error
      violations.push(`${protocol.name}: ${message}`)
      return toAnswer(protocol, request, { failure: 'status', status: 400, message })
    }
    const turn = turns.shift() ?? options.otherwise ?? OUT_OF_TURNS
    return toAnswer(protocol, request, typeof turn === 'function' ? await turn(request, index) : turn)
  }
  const { url, close } = await startCustomerEndpoint({ keepsRequests: false, answer: handle })
  return {
    /** A value for `AGENT_BASE_URL`, for all providers. */
    baseUrl: `${url}/v1`,
    requests,
    /** Why requests were rejected that one of the real APIs would reject, too. */
    violations,
    /** Appends turns to the script. */
    script: (...more: ModelTurn[]) => void turns.push(...more),
    /** The number of turns that no request has taken yet. */
    get left() {
      return turns.length
    },
    waitForRequests: waitForRequestsIn(requests, 'the model'),
    close,
    [Symbol.asyncDispose]: close,
  }
}

const OUT_OF_TURNS: ModelAnswer = { failure: 'status', status: 400, message: 'The stub model has no turn left' }

const JSON_TYPE = 'application/json'
const SERVER_SENT_EVENTS = { type: 'text/event-stream', encode: toServerSentEvents }

const PROTOCOLS: readonly ModelProtocol[] = [
  openAiResponses,
  openAiChat,
  anthropicMessages,
  googleGenerateContent,
  bedrockConverse,
]

function toRequest({ path, headers, json, receivedAt }: RecordedRequest, protocol: ModelProtocol): ModelRequest {
  const body = json as Record<string, unknown>
  const model = protocol.path.exec(path)?.groups?.['model']
  return {
    protocol: protocol.name,
    path,
    headers,
    body,
    isStreaming: protocol.isStreaming?.(path) ?? body['stream'] === true,
    receivedAt,
    model: model === undefined ? String(body['model']) : decodeURIComponent(model),
    conversation: { instructions: '', messages: [], tools: [] },
  }
}

function toAnswer(protocol: ModelProtocol, request: ModelRequest, turn: ModelAnswer): Answer {
  if ('failure' in turn) return toFailure(protocol, request, turn)
  const { encoding = SERVER_SENT_EVENTS, idHeader } = protocol
  const type = request.isStreaming ? encoding.type : JSON_TYPE
  const body = request.isStreaming
    ? encoding.encode(protocol.stream(turn, request))
    : JSON.stringify(protocol.whole(turn, request))
  return {
    async respond(response) {
      if (turn.delayMs) await sleep(turn.delayMs, undefined, { ref: false })
      response.writeHead(200, { 'content-type': type, ...(idHeader ? { [idHeader]: randomUUID() } : {}) })
      await writeBody(response, Buffer.from(body), turn)
    },
  }
}

/** The bytes of each piece of an answer that drips. */
const DRIP_BYTES = 16

async function writeBody(response: ServerResponse, body: Buffer, { isCutOff, dripMs }: ModelSpeech): Promise<void> {
  // Half of the answer, then a reset before the end of the chunked body.
  const sent = isCutOff ? body.subarray(0, Math.floor(body.length / 2)) : body
  const last = dripMs === undefined ? sent : await writeInPieces(response, sent, dripMs)
  if (isCutOff) response.write(last, () => response.socket?.resetAndDestroy())
  else response.end(last)
}

/** Writes all but the last piece, and returns that. */
async function writeInPieces(response: ServerResponse, body: Buffer, delayMs: number): Promise<Buffer> {
  let rest = body
  while (rest.length > DRIP_BYTES && !response.destroyed) {
    response.write(rest.subarray(0, DRIP_BYTES))
    rest = rest.subarray(DRIP_BYTES)
    await sleep(delayMs, undefined, { ref: false })
  }
  return rest
}

function toFailure(protocol: ModelProtocol, request: ModelRequest, turn: ModelFailure): Answer {
  if (turn.failure === 'hang' || turn.failure === 'reset') return turn.failure
  if (turn.failure === 'custom') return { respond: turn.respond }
  if (turn.failure === 'redirect') return { redirect: turn.location, status: 307 }
  if (turn.failure === 'prompt_blocked') return toAnswer(protocol, request, protocol.promptBlocked(request))
  const { status, message = 'scripted failure', code, retryAfterSeconds, body } = turn
  return {
    status,
    headers: {
      'content-type': JSON_TYPE,
      ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
    },
    body: body ?? JSON.stringify(protocol.error(status, message, code)),
  }
}
