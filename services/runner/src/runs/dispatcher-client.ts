import {
  type DeliveryIn,
  type DeliveryOut,
  type InternalErrorBody,
  type LookupCallIn,
  type LookupCallOut,
  RUN_JOURNAL_STATES,
} from '@workflow-service/contract'
import { backoff, type Gauge, isUnknownPath, type Logger, type OperationCall } from '@workflow-service/service-kit'
import type { ApprovalRequired, PayloadResult } from '../agent/agent.ts'
import { createAvailabilityLog } from '../availability-log.ts'
import { LeaseLostError, RunError, RunInterruptedError } from '../run-errors.ts'
import type { ActiveLease } from './active-lease.ts'
import { sleep } from '../sleep.ts'

/** A call of `sendPayload`: a payload under the delivery id that the journal has for it. */
export interface OutgoingDelivery extends OperationCall {
  readonly params: { readonly delivery_id: string }
  readonly body: DeliveryIn
}

/** A call of `callLookup`: a tool of a look-up. */
interface OutgoingLookup extends OperationCall {
  readonly params: { readonly organization_id: string; readonly lookup_id: string }
  readonly body: LookupCallIn
}

const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 2_000
/** A call that has waited this long for the dispatcher is logged, once. */
const LOG_WAITING_AFTER_MS = 10_000
/** Invalid responses to one call before the attempt at the run fails. */
const MAX_INVALID_RESPONSES = 10

/** With the code of a dispatcher that has read the request, they say that nothing was sent. */
const REFUSALS = [400, 404, 409, 422]

/** What became of a payload. */
export type DispatcherResult =
  | PayloadResult
  | ApprovalRequired
  /** A dispatcher of 1.0.0 refused the field `journal`; nothing was sent. */
  | { readonly outcome: 'journal_unknown' }
  /** Nothing was sent: the webhook source is paused. */
  | { readonly outcome: 'source_paused' }

/**
 * Why a call is repeated. `unavailable`: the dispatcher is not reachable or does not know our token yet; `busy`: it
 * asks to repeat the call later, because the webhook source or the dispatcher itself is at its limit; `invalid`: the
 * response is none of a dispatcher that could read the request.
 */
export interface Repeat {
  readonly repeat: 'unavailable' | 'busy' | 'invalid'
  readonly reason: string
}

/** The way of a call to the dispatcher: by HTTP, or in the same process. */
export interface DispatcherTransport {
  /** Makes one call. A rejection means that the dispatcher may not have got it. */
  send(delivery: OutgoingDelivery, signal: AbortSignal): Promise<DispatcherResponse>
  lookUp(lookup: OutgoingLookup, signal: AbortSignal): Promise<DispatcherResponse>
  close(): Promise<void>
}

export interface DispatcherResponse {
  readonly status: number
  /** The parsed body; undefined when it was no JSON. */
  readonly body: unknown
  /** The header RUN_JOURNAL_HEADER. */
  readonly journal?: unknown
}

export type DispatcherClient = ReturnType<typeof createDispatcherClient>

/**
 * Creates the client. A transport repeats nothing by itself; `deliver` repeats calls under the same delivery id, which
 * the dispatcher sends at most once.
 */
export function createDispatcherClient(options: {
  transport: DispatcherTransport
  logger: Logger
  /** The number of deliveries and look-ups that wait until the dispatcher accepts them. */
  waitingDeliveries: Pick<Gauge, 'inc' | 'dec'>
  /** A monotonic clock in milliseconds; tests set another one. */
  now?: () => number
}) {
  const { transport, logger, waitingDeliveries, now = () => performance.now() } = options
  const availability = createAvailabilityLog(logger, {
    unavailable: 'dispatcher.unavailable',
    available: 'dispatcher.available',
  })

  type Lease = Pick<ActiveLease, 'interrupted' | 'abandoned'>
  /** Repeats a call while the dispatcher is unavailable, at its limit, or its response was lost. */
  const untilAnswered = async <Result extends object>(
    { interrupted, abandoned }: Lease,
    call: (signal: AbortSignal) => Promise<Result | Repeat>,
    fields: object,
  ): Promise<Result> => {
    const firstMs = now()
    const nextDelayMs = backoff({ firstMs: FIRST_DELAY_MS, maxMs: MAX_DELAY_MS, hasJitter: true })
    let invalidResponses = 0
    let isWaiting = false
    let isLogged = false
    try {
      for (;;) {
        abandoned.throwIfAborted()
        const response = await call(abandoned)
        abandoned.throwIfAborted()
        if (!('repeat' in response)) {
          availability.reportAvailable()
          return response
        }
        const { repeat, reason } = response
        if (repeat === 'unavailable') availability.reportUnavailable({ reason })
        if (repeat === 'busy') availability.reportAvailable()
        if (repeat === 'invalid') {
          logger.error({ reason }, 'dispatcher.response_invalid')
          if (++invalidResponses >= MAX_INVALID_RESPONSES) throw new Error(reason)
        }
        if (!isWaiting) waitingDeliveries.inc()
        isWaiting = true
        const waitedMs = now() - firstMs
        if (waitedMs > LOG_WAITING_AFTER_MS && !isLogged) {
          isLogged = true
          logger.warn({ ...fields, waited_ms: Math.round(waitedMs), reason }, 'delivery.waiting')
        }
        // A stopping runner need not wait: the runner that continues the run asks again.
        await sleep(nextDelayMs(), interrupted)
      }
    } finally {
      if (isWaiting) waitingDeliveries.dec()
    }
  }
  return {
    /**
     * Sends a payload through the dispatcher, at most once per delivery id, and resolves to the result. Repeats the
     * request with the same id while the dispatcher is unavailable or its response was lost (contract README,
     * "Deliveries").
     * @throws LeaseLostError; RunInterruptedError, also when the organization is suspended; RunError when the id
     *   belongs to another payload; Error when the dispatcher keeps giving invalid responses.
     */
    deliver: (lease: Lease, delivery: OutgoingDelivery): Promise<DispatcherResult> =>
      untilAnswered(lease, (signal) => transport.send(delivery, signal).then(readResponse, toUnavailable), {
        ...delivery.params,
        source_id: delivery.body.source_id,
        run_id: delivery.body.run_id,
        organization_id: delivery.body.organization_id,
        request_id: delivery.requestId,
      }),
    /**
     * Calls a tool of a look-up. A look-up that was deleted is an answer without a result.
     * @throws RunInterruptedError, also when the organization is suspended; Error when the dispatcher keeps giving
     *   invalid responses.
     */
    lookUp: (lease: Lease, lookup: OutgoingLookup): Promise<LookupCallOut> =>
      untilAnswered(lease, (signal) => transport.lookUp(lookup, signal).then(readLookupResponse, toUnavailable), {
        lookup_id: lookup.params.lookup_id,
        run_id: lookup.body.run_id,
        request_id: lookup.requestId,
      }),
    close: (): Promise<void> => transport.close(),
  }
}

function readLookupResponse(response: DispatcherResponse): LookupCallOut | Repeat {
  const { status, body } = response
  if (status === 200) return body as LookupCallOut
  const result = readResponse(response)
  if ('repeat' in result) return result
  const { error } = toObject(body) as { error?: InternalErrorBody }
  const text = error?.message ?? 'The look-up cannot be called.'
  return { ok: false, status: null, text, bytes: 0, is_cut_off: false, duration_ms: 0 }
}

/** Only the code: the error object of an HTTP client may carry the request, and with it the token. */
function toUnavailable(error: unknown): Repeat {
  const { code, name } = error as { code?: string; name?: string }
  return { repeat: 'unavailable', reason: code ?? name ?? 'unknown' }
}

/**
 * Reads a response of the dispatcher, which may have any body.
 * @throws what ends the run, or its stay at this runner.
 */
export function readResponse({ status, body, journal: written }: DispatcherResponse): DispatcherResult | Repeat {
  if (status === 200) {
    const { outcome, duration_ms: durationMs = null, ...sent } = toObject(body) as Partial<DeliveryOut>
    if (outcome === 'in_flight') return { repeat: 'busy', reason: 'the delivery is still in flight' }
    if (outcome === undefined) return { repeat: 'invalid', reason: 'The dispatcher answered 200 without an outcome' }
    const { status: code = null, answer = null, reason = null } = sent
    const journal = RUN_JOURNAL_STATES.find((state) => state === written)
    return { outcome, status: code, answer, reason, durationMs, ...(journal && { journal }) }
  }
  const { error } = toObject(body) as { error?: InternalErrorBody }
  const { code = '', message: explanation = 'no reason given', details } = error ?? {}
  const reason = `The dispatcher answered ${status} ${code}: ${explanation}`
  // Of a proxy before the dispatcher, of another service, or of a request that did not arrive whole: an earlier call
  // with this id may have sent the payload.
  const isOfOther = code === '' || isUnknownPath({ code, message: explanation })
  if ((isOfOther && REFUSALS.includes(status)) || code === 'invalid_request') return { repeat: 'invalid', reason }
  switch (status) {
    case 404:
      return notSent('refused', 'The webhook source no longer exists. Nothing was sent.')
    case 409:
      if (code === 'approval_required') return { outcome: code }
      throw code === 'lease_lost' ? new LeaseLostError() : new RunError('delivery_conflict', reason)
    case 400:
    case 422: {
      // A dispatcher of 1.0.0 does not know the field.
      const isUnknown = details?.some((detail) => detail.field === 'journal' && detail.code === 'extra_forbidden')
      return isUnknown ? { outcome: 'journal_unknown' } : notSent('invalid', explanation)
    }
    case 403:
      if (code !== 'organization_suspended') return { repeat: 'unavailable', reason }
      throw new RunInterruptedError('The run was interrupted because its organization is suspended')
    case 503:
      if (code === 'source_paused') return { outcome: code }
      return { repeat: code === 'service_unavailable' ? 'busy' : 'unavailable', reason }
    case 401:
    case 429:
    case 502:
    case 504:
      return { repeat: 'unavailable', reason }
    default:
      return { repeat: 'invalid', reason }
  }
}

function notSent(outcome: 'refused' | 'invalid', reason: string): PayloadResult {
  return { outcome, status: null, answer: null, reason }
}

/** What does not come from a dispatcher, such as the page of a proxy, has no fields. */
function toObject(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {}
}
