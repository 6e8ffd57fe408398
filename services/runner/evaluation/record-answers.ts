import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

/** An answer of a provider in the folder; the file's name is the hash of its request. */
interface RecordedAnswer {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

export interface AnswerRecorder {
  /** A value for AGENT_BASE_URL; `label` distinguishes the repeats of a case, whose requests are equal. */
  baseUrlFor(label: string): string
  /** Requests that were sent to the provider. */
  readonly requested: number
  /** Requests that were answered from the folder. */
  readonly replayed: number
  close(): Promise<void>
}

/** Headers that describe the connection, not the request. */
const OMITTED_HEADERS = new Set(['host', 'connection', 'content-length', 'accept-encoding', 'transfer-encoding'])

/**
 * Starts a server between an agent and its provider. It answers a request whose answer is in the folder from there;
 * others it sends on, and keeps the answer if its status is 2xx. Keys are in headers, which are neither hashed nor kept.
 * Without `upstreamUrl`, such as in CI, a request without a recorded answer gets a 400, which no agent repeats.
 */
export async function startAnswerRecorder(options: {
  readonly folder: string
  /** The base URL of the provider's API. */
  readonly upstreamUrl: string | null
}): Promise<AnswerRecorder> {
  const { folder, upstreamUrl } = options
  mkdirSync(folder, { recursive: true })
  const counts = { requested: 0, replayed: 0 }

  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readBody(incoming)
    const [, label = '', ...rest] = (incoming.url ?? '').split('/')
    const path = rest.join('/')
    const hash = createHash('sha256').update(`${label}\n${path}\n`).update(body).digest('hex').slice(0, 32)
    const file = join(folder, `${hash}.json`)
    if (existsSync(file)) {
      counts.replayed += 1
      const answer = JSON.parse(readFileSync(file, 'utf8')) as RecordedAnswer
      response.writeHead(answer.status, { 'content-type': answer.contentType }).end(answer.body)
      return
    }
    if (upstreamUrl === null) {
      const message = `There is no recorded answer ${hash} (${decodeURIComponent(label)}); record it with a provider`
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(errorBody(message)))
      return
    }
    counts.requested += 1
    const answer = await fetch(`${upstreamUrl.replace(/\/+$/u, '')}/${path}`, {
      method: incoming.method ?? 'POST',
      headers: headersOf(incoming),
      body,
      redirect: 'manual',
    })
    const contentType = answer.headers.get('content-type') ?? 'application/json'
    const recorded: RecordedAnswer = { status: answer.status, contentType, body: await answer.text() }
    if (answer.ok) writeFileSync(file, `${JSON.stringify(recorded, null, 2)}\n`)
    const retryAfter = answer.headers.get('retry-after')
    response
      .writeHead(answer.status, { 'content-type': contentType, ...(retryAfter ? { 'retry-after': retryAfter } : {}) })
      .end(recorded.body)
  }
  const server = createServer((incoming, response) => {
    handle(incoming, response).catch((error: unknown) => response.writeHead(502).end(String(error)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    baseUrlFor: (label) => `http://127.0.0.1:${port}/${encodeURIComponent(label)}`,
    get requested() {
      return counts.requested
    },
    get replayed() {
      return counts.replayed
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** An error in the words of OpenAI's and Anthropic's APIs. */
function errorBody(message: string): object {
  return { type: 'error', error: { type: 'invalid_request_error', message, param: null, code: null } }
}

async function readBody(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

function headersOf(incoming: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(incoming.headers).flatMap(([name, value]) =>
      OMITTED_HEADERS.has(name) || value === undefined ? [] : [[name, String(value)]],
    ),
  )
}
