import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import { fileURLToPath } from 'node:url'
import type {
  DeliveriesIn,
  DeliveriesLine,
  DeliveryOut,
  FieldError,
  InternalErrorBody,
  WebhookSourceOut,
} from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { type StartedProcess, startProcess } from '@workflow-service/testkit'

/** A token of every test dispatcher. */
export const TOKEN = randomBytes(24).toString('hex')

/** A response of the internal API. */
export interface InternalResponse {
  status: number
  headers: Headers
  /** The parsed body, or null if there was none. Has the fields of every operation's body. */
  body: ResponseBody
}

type ResponseBody = WebhookSourceOut &
  DeliveryOut & {
    error: InternalErrorBody & { details: FieldError[] }
    data: DeliveryOut[]
    pagination: { has_more: boolean; next_cursor: string | null }
  }

/** The environment of a dispatcher on this database that may send requests to 127.0.0.1. */
export function testEnv(databaseUrl: string): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    INTERNAL_API_TOKEN: TOKEN,
    SECRETS_KEY: randomBytes(32).toString('base64'),
    WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8',
    HOST: '127.0.0.1',
    PORT: '0',
  }
}

/** Calls the internal API with the token. A body that is not a string is sent as JSON. */
export async function callDispatcher(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<InternalResponse> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${TOKEN}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    body: (text === '' ? null : JSON.parse(text)) as ResponseBody,
  }
}

/** Sends several payloads in one request, and yields the responses as they come. */
export async function* sendTogether(
  url: string,
  deliveries: readonly Pick<DeliveriesIn['deliveries'][number], 'delivery_id' | 'body'>[],
): AsyncGenerator<DeliveriesLine> {
  const response = await fetch(`${url}/internal/deliveries`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ deliveries: deliveries.map((each) => ({ request_id: 'together', trace: {}, ...each })) }),
  })
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  for await (const line of createInterface({ input: Readable.fromWeb(response.body as ReadableStream) })) {
    yield JSON.parse(line) as DeliveriesLine
  }
}

/** The same; resolves to all responses, in the order of the payloads. */
export async function sendAll(...given: Parameters<typeof sendTogether>): Promise<DeliveriesLine[]> {
  const lines: DeliveriesLine[] = []
  for await (const line of sendTogether(...given)) lines.push(line)
  return lines.toSorted((a, b) => a.index - b.index)
}

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** Starts a dispatcher in its own process, which a test may kill. */
export async function startDispatcherProcess(
  env: Record<string, string>,
): Promise<{ url: string; process: StartedProcess }> {
  const started = await startProcess({ args: [MAIN], env, readyWhen: { line: '"msg":"service.started"' } })
  const line = started.jsonLines.find(({ msg }) => msg === 'service.started')
  return { url: String(line?.['url']), process: started }
}

/** Returns the path of a webhook source. */
export function sourcePath(organizationId: string, sourceId: string): string {
  return `/internal/organizations/${organizationId}/webhook-sources/${sourceId}`
}

/** Returns the body of a save, with changes. */
export function sourceIn(change: Record<string, unknown>): Record<string, unknown> {
  return {
    name: `Order intake ${newId()}`,
    description: 'Takes orders.',
    endpoint_url: 'http://127.0.0.1:9/',
    example_request_body: { order_id: 'A-1', total: 99.5 },
    ...change,
  }
}

/** Follows the example of `sourceIn`. */
export const PAYLOAD = { order_id: 'B-2', total: 12 }

/** Matches a response with this status and error code. */
export function refusal(status: number, code: string): object {
  return { status, body: { error: { code } } }
}

/** Matches a 422 for this field alone. */
export function invalidField(field: string, code: string): object {
  return { status: 422, body: { error: { code: 'validation_error', details: [{ field, code }] } } }
}
