import {
  DELIVERY_OUTCOMES,
  type DeliveryIn,
  type DeliveryOutcome,
  PAYLOAD_DEADLINE_MS,
} from '@workflow-service/contract'
import type { Logger } from '@workflow-service/service-kit'
import { Pool } from 'undici'
import { type DeliveryResult, LeaseLostError, RunError } from './agent/agent.ts'
import { endOf, type HeldSession } from './held-sessions.ts'
import { pauseIn } from './patiently.ts'

/** The dispatcher as the runs see it. */
export interface DispatcherClient {
  /**
   * Has a payload sent, at most once for its id, and resolves with what came of it. Asks again with the same id while the
   * dispatcher is away or did not answer, as long as the session is held.
   * @throws LeaseLostError, RunInterruptedError, RunError when the id belongs to another payload, or an Error when the
   * dispatcher keeps answering what it should not.
   */
  deliver(session: HeldSession, delivery: OutgoingDelivery): Promise<DeliveryResult>
  close(): Promise<void>
}

/** A payload under the id that its journal holds. */
export interface OutgoingDelivery {
  readonly id: string
  readonly body: DeliveryIn
  readonly requestId: string
}

/** The dispatcher answers within the payload's deadline and a little; after that the connection counts as broken. */
const ANSWER_TIMEOUT_MS = PAYLOAD_DEADLINE_MS + 30_000
const CONNECT_TIMEOUT_MS = 5_000
const MAX_ANSWER_BYTES = 4 * 1_048_576
const FIRST_DELAY_MS = 100
const LONGEST_DELAY_MS = 2_000
/** How often an answer that should not be is asked for again before the attempt counts as failed. */
const MAX_WRONG_ANSWERS = 10

type Answer =
  | { readonly kind: 'outcome'; readonly result: DeliveryResult }
  | { readonly kind: 'lease_lost' }
  | { readonly kind: 'conflict'; readonly reason: string }
  /** The dispatcher is away, has no room, or does not know our token. */
  | { readonly kind: 'away'; readonly reason: string }
  | { readonly kind: 'wrong'; readonly reason: string }

/**
 * The client of the dispatcher's internal API. The connections repeat nothing by themselves; what is asked again is asked
 * here, by the delivery's id, which the dispatcher sends at most once however often it is asked.
 */
export function createDispatcherClient(options: {
  url: string
  token: string
  /** As many as runs may wait for an answer at once. */
  connections: number
  logger: Logger
}): DispatcherClient {
  const { url, token, connections, logger } = options
  const { origin, pathname } = new URL(url)
  const basePath = pathname.replace(/\/+$/, '')
  const pool = new Pool(origin, {
    connections,
    pipelining: 1,
    connectTimeout: CONNECT_TIMEOUT_MS,
    headersTimeout: ANSWER_TIMEOUT_MS,
    bodyTimeout: ANSWER_TIMEOUT_MS,
    maxResponseSize: MAX_ANSWER_BYTES,
  })
  const availability = createAvailabilityLog(logger)

  const ask = async ({ id, body, requestId }: OutgoingDelivery, signal: AbortSignal): Promise<Answer> => {
    try {
      const answer = await pool.request({
        method: 'PUT',
        path: `${basePath}/internal/deliveries/${id}`,
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'x-request-id': requestId,
        },
        body: JSON.stringify(body),
        // Else undici takes a PUT for something that it may send again.
        idempotent: false,
        signal,
      })
      return toAnswer(answer.statusCode, await answer.body.text())
    } catch (error) {
      // Only the code: an HTTP client's error may carry the request, and with it the token.
      const { code, name } = error as { code?: string; name?: string }
      return { kind: 'away', reason: code ?? name ?? 'unknown' }
    }
  }

  return {
    async deliver(session, delivery) {
      let wrongAnswers = 0
      for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS)) {
        if (session.abort.aborted) throw endOf(session)
        const answer = await ask(delivery, session.abort)
        if (session.abort.aborted) throw endOf(session)
        availability.tell(answer)
        if (answer.kind === 'outcome') return answer.result
        if (answer.kind === 'lease_lost') throw new LeaseLostError()
        if (answer.kind === 'conflict') throw new RunError('delivery_conflict', answer.reason)
        if (answer.kind === 'wrong' && ++wrongAnswers >= MAX_WRONG_ANSWERS) throw new Error(answer.reason)
        // Told to stop, it need not wait: whoever takes the run up asks by the same id.
        await pauseIn(session, delayMs * (0.5 + Math.random() / 2), session.signal)
      }
    },
    close: () => pool.destroy(),
  }
}

function toAnswer(status: number, text: string): Answer {
  const body = toObject(parse(text))
  if (status === 200) {
    const result = toResult(body)
    if (result) return { kind: 'outcome', result }
    return body['outcome'] === 'in_flight'
      ? { kind: 'away', reason: 'the delivery is still in flight' }
      : { kind: 'wrong', reason: 'The dispatcher answered 200 without an outcome' }
  }
  const { code, message } = toObject(body['error'])
  const words = typeof message === 'string' ? message : 'without a reason'
  const reason = `The dispatcher answered ${status} ${typeof code === 'string' ? code : ''}: ${words}`
  switch (status) {
    case 404:
      return notSent('refused', 'The webhook source does not exist any more. Nothing was sent.')
    case 409:
      return code === 'lease_lost' ? { kind: 'lease_lost' } : { kind: 'conflict', reason }
    case 400:
    case 422:
      return notSent('invalid', words)
    case 401:
    case 403:
    case 429:
    case 502:
    case 503:
    case 504:
      return { kind: 'away', reason }
    default:
      return { kind: 'wrong', reason }
  }
}

function notSent(outcome: 'refused' | 'invalid', reason: string): Answer {
  return { kind: 'outcome', result: { outcome, status: null, answer: null, reason } }
}

function toResult(body: Record<string, unknown>): DeliveryResult | undefined {
  const { outcome, status, answer, reason } = body
  if (!isFinal(outcome)) return undefined
  return {
    outcome,
    status: typeof status === 'number' ? status : null,
    answer: typeof answer === 'string' ? answer : null,
    reason: typeof reason === 'string' ? reason : null,
  }
}

function isFinal(outcome: unknown): outcome is DeliveryResult['outcome'] {
  return outcome !== 'in_flight' && DELIVERY_OUTCOMES.includes(outcome as DeliveryOutcome)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function toObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

/** One line when the dispatcher goes away and one when it is back, however many runs wait for it. */
function createAvailabilityLog(logger: Logger): { tell(answer: Answer): void } {
  let isAway = false
  return {
    tell(answer) {
      if (answer.kind === 'wrong') logger.error({ reason: answer.reason }, 'the dispatcher answers wrongly')
      else if (answer.kind !== 'away' && isAway) {
        isAway = false
        logger.info('the dispatcher is back')
      } else if (answer.kind === 'away' && !isAway) {
        isAway = true
        logger.warn({ reason: answer.reason }, 'the dispatcher is away; deliveries wait for it')
      }
    },
  }
}
