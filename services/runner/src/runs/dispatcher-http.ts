import {
  DELIVERIES_MAX,
  type DeliveriesIn,
  type DeliveriesLine,
  parseJson,
  PAYLOAD_DEADLINE_MS,
  RUN_JOURNAL_HEADER,
  toTraceHeaders,
} from '@workflow-service/contract'
import { batchCalls, type OperationCall } from '@workflow-service/service-kit'
import { type Dispatcher, Pool } from 'undici'
import type { RunnerConfig } from '../config.ts'
import type { DispatcherResponse, DispatcherTransport, OutgoingDelivery } from './dispatcher-client.ts'
import { untilAborted } from './dispatcher-in-process.ts'

/** The dispatcher responds soon after the payload's deadline; later than this the connection counts as broken. */
const RESPONSE_TIMEOUT_MS = PAYLOAD_DEADLINE_MS + 30_000
const CONNECT_TIMEOUT_MS = 5_000
const MAX_RESPONSE_BYTES = 4 * 1_048_576
/** Half of what the dispatcher reads, so that only a delivery that has its request to itself can be too large. */
const MAX_REQUEST_BYTES = 256 * 1024
/** How a dispatcher of 1.0.0 refuses several deliveries, and one of this release a field of them. */
const REFUSED_TOGETHER = [400, 404, 422]

/**
 * Creates the way to a dispatcher in another process. undici repeats no request by itself. The deliveries of one turn
 * of the event loop share a request, and each gets its response as soon as the dispatcher has it.
 */
export function createDispatcherHttp({
  dispatcherUrl,
  internalApiToken: token,
  concurrency,
}: Pick<RunnerConfig, 'dispatcherUrl' | 'internalApiToken' | 'concurrency'>): DispatcherTransport {
  const { origin, pathname } = new URL(dispatcherUrl)
  const basePath = pathname.replace(/\/+$/, '')
  const pool = new Pool(origin, {
    // One per run that can wait for a response.
    connections: concurrency,
    pipelining: 1,
    connectTimeout: CONNECT_TIMEOUT_MS,
    headersTimeout: RESPONSE_TIMEOUT_MS,
    bodyTimeout: RESPONSE_TIMEOUT_MS,
    maxResponseSize: MAX_RESPONSE_BYTES,
  })
  const sendWithOthers = batchCalls(async (batch: readonly SerializedDelivery[]) => sendTogether(batch), {
    maxSize: DELIVERIES_MAX,
    maxBytes: MAX_REQUEST_BYTES,
    sizeOf: ({ text }) => Buffer.byteLength(text),
    concurrency: Infinity,
  })
  const sendOwn = async (
    method: 'PUT' | 'POST',
    path: string,
    { body, requestId, trace }: OperationCall,
    signal?: AbortSignal,
  ): Promise<DispatcherResponse> => {
    const headers = { 'x-request-id': requestId, ...toTraceHeaders(trace) }
    return await readWhole(await request(method, path, JSON.stringify(body), headers, signal))
  }
  return {
    // The other deliveries of a request go on when one is no longer waited for.
    send: async (delivery, signal) =>
      await untilAborted(sendWithOthers({ delivery, text: JSON.stringify(toEntry(delivery)) }), signal),
    lookUp(lookup, signal) {
      const { organization_id, lookup_id } = lookup.params
      return sendOwn('POST', `/internal/organizations/${organization_id}/lookups/${lookup_id}/call`, lookup, signal)
    },
    close: () => pool.destroy(),
  }

  /** Returns a promise of each response, in the order of the deliveries. */
  function sendTogether(batch: readonly SerializedDelivery[]): Promise<DispatcherResponse>[] {
    const responses = batch.map(() => Promise.withResolvers<DispatcherResponse>())
    readResponses(batch, responses).catch((error: unknown) => {
      for (const { reject } of responses) reject(error)
    })
    return responses.map(({ promise }) => promise)
  }

  async function readResponses(
    batch: readonly SerializedDelivery[],
    responses: readonly PromiseWithResolvers<DispatcherResponse>[],
  ): Promise<void> {
    const text = `{"deliveries":[${batch.map((each) => each.text).join()}]}`
    const response = await request('POST', '/internal/deliveries', text, { accept: 'application/x-ndjson' })
    if (response.statusCode !== 200) {
      const whole = await readWhole(response)
      const isAlone = REFUSED_TOGETHER.includes(whole.status)
      for (const [index, { delivery }] of batch.entries()) {
        const path = `/internal/deliveries/${delivery.params.delivery_id}`
        responses[index]?.resolve(isAlone ? sendOwn('PUT', path, delivery) : whole)
      }
      return
    }
    let rest = ''
    for await (const chunk of response.body.setEncoding('utf8')) {
      const lines = `${rest}${String(chunk)}`.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const { index, ...own } = parseJson(line) as DeliveriesLine
        responses[index]?.resolve(own)
      }
    }
    throw Object.assign(new Error('The dispatcher has not answered each delivery.'), { code: 'ANSWER_MISSING' })
  }

  function request(method: 'PUT' | 'POST', path: string, body: string, headers: object, signal?: AbortSignal) {
    return pool.request({
      method,
      path: `${basePath}${path}`,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      body,
      // undici may repeat a PUT on a new connection unless `idempotent` is false.
      idempotent: false,
      signal: signal ?? null,
    })
  }
}

interface SerializedDelivery {
  readonly delivery: OutgoingDelivery
  readonly text: string
}

function toEntry({ params, body, requestId, trace }: OutgoingDelivery): DeliveriesIn['deliveries'][number] {
  return { ...params, request_id: requestId, trace: toTraceHeaders(trace), body }
}

async function readWhole({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<DispatcherResponse> {
  return { status: statusCode, body: parseJson(await body.text()), journal: headers[RUN_JOURNAL_HEADER] }
}
