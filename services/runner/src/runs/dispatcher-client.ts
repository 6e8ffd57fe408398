import {
  type DeliveryIn,
  type DeliveryOut,
  type InternalErrorBody,
  type LookupCallIn,
  type LookupCallOut,
  RUN_JOURNAL_STATES,
  type RunJournalState,
  type TraceContext,
} from '@workflow-service/contract'
import { backoff, type Gauge, type Logger } from '@workflow-service/service-kit'
import type { ApprovalRequired, DeliveryResult } from '../agent/agent.ts'
import { createAvailabilityLog } from '../availability-log.ts'
import { LeaseLostError, RunError, RunInterruptedError } from '../run-errors.ts'
import type { ActiveLease } from './active-lease.ts'
import { sleep } from '../sleep.ts'

/** A payload and the delivery id that the journal has for it. */
export interface OutgoingDelivery {
  readonly id: string
  readonly body: DeliveryIn
  readonly requestId: string
  readonly trace: TraceContext | null
}

/** A call of a tool of a look-up. */
export interface OutgoingLookup {
  readonly organizationId: string
  readonly lookupId: string
  readonly body: LookupCallIn
  readonly requestId: string
  readonly trace: TraceContext | null
}

const FIRST_DELAY_MS = 100
const MAX_DELAY_MS = 2_000
/** A delivery that has waited this long for the dispatcher is logged, once. */
const LOG_WAITING_AFTER_MS = 10_000
/** Invalid responses to one delivery before the attempt at the run fails. */
const MAX_INVALID_RESPONSES = 10

/** The result of a delivery, and what the dispatcher has written of it. */
export interface DeliveredPayload extends DeliveryResult {
  /** `written`: the planned steps and the result are in the journal; `succeeded`: the run has ended, too. */
  readonly journal?: RunJournalState
}

/** What became of a payload. */
export type DispatcherResult =
  | DeliveredPayload
  | ApprovalRequired
  /** A dispatcher of the previous release refused the field `journal`; nothing was sent. */
  | { readonly outcome: 'journal_unknown' }
  /** Nothing was sent: the webhook source is paused. */
  | { readonly outcome: 'source_paused' }

export type DispatcherResponse<Result = DispatcherResult> =
  | { readonly kind: 'outcome'; readonly result: Result }
  /**
   * `unavailable`: the dispatcher is not reachable or does not know our token yet; `busy`: it asks to repeat the call
   * later, because the webhook source or the dispatcher itself is at its limit.
   */
  | { readonly kind: 'unavailable' | 'busy' | 'invalid'; readonly reason: string }

/** The way of a payload to the dispatcher: by HTTP, or as a call in the same process. */
export interface DispatcherTransport {
  /** Makes one call of `sendPayload`. A rejection means that the dispatcher may not have got it. */
  send(delivery: OutgoingDelivery, signal: AbortSignal): Promise<DispatcherAnswer>
  /** Makes one call of `callLookup`. */
  lookUp(lookup: OutgoingLookup, signal: AbortSignal): Promise<DispatcherAnswer>
  close(): Promise<void>
}

export interface DispatcherAnswer {
  readonly status: number
  /** The parsed body; undefined when it was no JSON. */
  readonly body: unknown
  /** The header RUN_JOURNAL_HEADER. */
  readonly journal?: unknown
}

/** Client of the dispatcher's internal API. */
export type DispatcherClient = ReturnType<typeof createDispatcherClient>

/**
 * Creates the client. A transport repeats nothing by itself; `deliver` repeats calls under the same delivery id, which
 * the dispatcher sends at most once.
 */
export function createDispatcherClient(options: {
  transport: DispatcherTransport
  logger: Logger
  /** The number of deliveries that wait until the dispatcher accepts them. */
  waitingDeliveries: Pick<Gauge, 'inc' | 'dec'>
  /** A monotonic clock in milliseconds; tests set another one. */
  now?: () => number
}) {
  const { transport, logger, waitingDeliveries, now = () => performance.now() } = options
  const availability = createAvailabilityLog(logger, {
    unavailable: 'dispatcher.unavailable',
    available: 'dispatcher.available',
  })

  /** Repeats a call while the dispatcher is unavailable, at its limit, or its response was lost. */
  const untilAnswered = async <Result>(
    { signal, abort }: Pick<ActiveLease, 'signal' | 'abort'>,
    call: (signal: AbortSignal) => Promise<DispatcherResponse<Result>>,
    fields: object,
  ): Promise<Result> => {
    const firstMs = now()
    const nextDelayMs = backoff({ firstMs: FIRST_DELAY_MS, maxMs: MAX_DELAY_MS, hasJitter: true })
    let invalidResponses = 0
    let isWaiting = false
    let isLogged = false
    try {
      for (;;) {
        abort.throwIfAborted()
        const response = await call(abort)
        abort.throwIfAborted()
        if (response.kind === 'unavailable') availability.reportUnavailable({ reason: response.reason })
        if (response.kind === 'busy' || response.kind === 'outcome') availability.reportAvailable()
        if (response.kind === 'outcome') return response.result
        if (response.kind === 'invalid') {
          logger.error({ reason: response.reason }, 'dispatcher.response_invalid')
          if (++invalidResponses >= MAX_INVALID_RESPONSES) throw new Error(response.reason)
        }
        if (!isWaiting) waitingDeliveries.inc()
        isWaiting = true
        const waitedMs = now() - firstMs
        if (waitedMs > LOG_WAITING_AFTER_MS && !isLogged) {
          isLogged = true
          logger.warn({ ...fields, waited_ms: Math.round(waitedMs), reason: response.reason }, 'delivery.waiting')
        }
        // A stopping runner need not wait: the runner that continues the run asks again.
        await sleep(nextDelayMs(), signal)
      }
    } finally {
      if (isWaiting) waitingDeliveries.dec()
    }
  }
  type Lease = Pick<ActiveLease, 'signal' | 'abort'>
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
        delivery_id: delivery.id,
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
        lookup_id: lookup.lookupId,
        run_id: lookup.body.run_id,
        request_id: lookup.requestId,
      }),
    close: (): Promise<void> => transport.close(),
  }
}

function readLookupResponse(answer: DispatcherAnswer): DispatcherResponse<LookupCallOut> {
  const { status, body } = answer
  if (status === 200) return { kind: 'outcome', result: body as LookupCallOut }
  const response = readResponse(answer)
  if (response.kind !== 'outcome') return response
  const { error } = toObject(body) as { error?: InternalErrorBody }
  const text = error?.message ?? 'The look-up cannot be called.'
  return { kind: 'outcome', result: { ok: false, status: null, text, bytes: 0, is_cut_off: false, duration_ms: 0 } }
}

/** Only the code: the error object of an HTTP client may carry the request, and with it the token. */
function toUnavailable(error: unknown): { kind: 'unavailable'; reason: string } {
  const { code, name } = error as { code?: string; name?: string }
  return { kind: 'unavailable', reason: code ?? name ?? 'unknown' }
}

/**
 * Reads an answer of the dispatcher; any body is a response of some kind.
 * @throws what ends the run, or its stay at this runner.
 */
export function readResponse({ status, body, journal: written }: DispatcherAnswer): DispatcherResponse {
  if (status === 200) {
    const { outcome, duration_ms: durationMs = null, ...sent } = toObject(body) as Partial<DeliveryOut>
    if (outcome === 'in_flight') return { kind: 'busy', reason: 'the delivery is still in flight' }
    if (outcome === undefined) return { kind: 'invalid', reason: 'The dispatcher answered 200 without an outcome' }
    const { status: code = null, answer = null, reason = null } = sent
    const journal = RUN_JOURNAL_STATES.find((state) => state === written)
    return {
      kind: 'outcome',
      result: { outcome, status: code, answer, reason, durationMs, ...(journal && { journal }) },
    }
  }
  const { error } = toObject(body) as { error?: InternalErrorBody }
  const { code = '', message: explanation = 'no reason given', details } = error ?? {}
  const reason = `The dispatcher answered ${status} ${code}: ${explanation}`
  switch (status) {
    case 404:
      return notSent('refused', 'The webhook source no longer exists. Nothing was sent.')
    case 409:
      if (code === 'approval_required') return { kind: 'outcome', result: { outcome: code } }
      throw code === 'lease_lost' ? new LeaseLostError() : new RunError('delivery_conflict', reason)
    case 400:
    case 422:
      if (details?.some((detail) => detail.field === 'journal' && detail.code === 'extra_forbidden')) {
        return { kind: 'outcome', result: { outcome: 'journal_unknown' } }
      }
      return notSent('invalid', explanation)
    case 403:
      if (code !== 'organization_suspended') return { kind: 'unavailable', reason }
      throw new RunInterruptedError('The run was interrupted because its organization is suspended')
    case 503:
      if (code === 'source_paused') return { kind: 'outcome', result: { outcome: code } }
      return code === 'service_unavailable' ? { kind: 'busy', reason } : { kind: 'unavailable', reason }
    case 401:
    case 429:
    case 502:
    case 504:
      return { kind: 'unavailable', reason }
    default:
      return { kind: 'invalid', reason }
  }
}

function notSent(outcome: 'refused' | 'invalid', reason: string): DispatcherResponse {
  return { kind: 'outcome', result: { outcome, status: null, answer: null, reason } }
}

/** What does not come from a dispatcher, such as the page of a proxy, has no fields. */
function toObject(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {}
}
