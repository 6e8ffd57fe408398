import {
  parseJson,
  PAYLOAD_DEADLINE_MS,
  RUN_JOURNAL_HEADER,
  toTraceHeaders,
  type TraceContext,
} from '@workflow-service/contract'
import { Pool } from 'undici'
import type { DispatcherTransport } from './dispatcher-client.ts'

/** The dispatcher responds soon after the payload's deadline; later than this the connection counts as broken. */
const RESPONSE_TIMEOUT_MS = PAYLOAD_DEADLINE_MS + 30_000
const CONNECT_TIMEOUT_MS = 5_000
const MAX_RESPONSE_BYTES = 4 * 1_048_576

/** Creates the way to a dispatcher in another process. undici repeats no request by itself. */
export function createDispatcherHttp(options: {
  url: string
  token: string
  /** Maximum connections: one per run that can wait for a response. */
  connections: number
}): DispatcherTransport {
  const { url, token, connections } = options
  const { origin, pathname } = new URL(url)
  const basePath = pathname.replace(/\/+$/, '')
  const pool = new Pool(origin, {
    connections,
    pipelining: 1,
    connectTimeout: CONNECT_TIMEOUT_MS,
    headersTimeout: RESPONSE_TIMEOUT_MS,
    bodyTimeout: RESPONSE_TIMEOUT_MS,
    maxResponseSize: MAX_RESPONSE_BYTES,
  })
  return {
    async send({ id, body, requestId, trace }, signal) {
      return await request('PUT', `/internal/deliveries/${id}`, { body, requestId, trace }, signal)
    },
    async lookUp({ organizationId, lookupId, ...call }, signal) {
      return await request('POST', `/internal/organizations/${organizationId}/lookups/${lookupId}/call`, call, signal)
    },
    close: () => pool.destroy(),
  }

  async function request(
    method: 'PUT' | 'POST',
    path: string,
    { body, requestId, trace }: { body: unknown; requestId: string; trace: TraceContext | null },
    signal: AbortSignal,
  ) {
    const response = await pool.request({
      method,
      path: `${basePath}${path}`,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'x-request-id': requestId,
        ...toTraceHeaders(trace),
      },
      body: JSON.stringify(body),
      // undici may repeat a PUT on a new connection unless `idempotent` is false.
      idempotent: false,
      signal,
    })
    const { [RUN_JOURNAL_HEADER]: journal } = response.headers
    return { status: response.statusCode, body: parseJson(await response.body.text()), journal }
  }
}
