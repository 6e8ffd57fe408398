import { setTimeout as pause } from 'node:timers/promises'
import { type Delivery, type DeliveryResult, isDatabaseUnavailable } from '@workflow-service/database'
import { ANSWER_MAX_LENGTH, truncateText } from '@workflow-service/contract'
import { describeError, type Logger } from '@workflow-service/service-kit'
import type { DeliveryStore } from './delivery-store.ts'

/** Records outcomes, and keeps those in memory that the database does not take for the moment. */
export interface OutcomeRecorder {
  /** The delivery as it now stands. Never rejects: what came of a request is known here, whatever the database does. */
  record(delivery: Delivery, result: DeliveryResult): Promise<Delivery>
  /** A delivery whose outcome is known here and not in the database. */
  find(deliveryId: string): Delivery | undefined
  /** How many wait for the database. */
  readonly size: number
  /** Waits until all are recorded, or the time is over. */
  drain(timeoutMs: number): Promise<void>
  /** Gives up; a dispatcher that is asked later answers `unknown` for those. */
  stop(): void
}

/** The database is asked again after this long, and given up after ten minutes: by then the log says `unknown`. */
const RETRY_MS = 1_000
const GIVE_UP_MS = 600_000

export function createOutcomeRecorder(options: {
  store: Pick<DeliveryStore, 'recordOutcome'>
  logger: Logger
}): OutcomeRecorder {
  const { store, logger } = options
  const waiting = new Map<string, { delivery: Delivery; recorded: Promise<void> }>()
  const stopping = new AbortController()

  const keepTrying = async (delivery: Delivery, result: DeliveryResult): Promise<void> => {
    const deadline = performance.now() + GIVE_UP_MS
    while (!stopping.signal.aborted && performance.now() < deadline) {
      await pause(RETRY_MS, undefined, { signal: stopping.signal }).catch(() => {})
      try {
        await store.recordOutcome({ organizationId: delivery.organizationId, id: delivery.id, result })
        logger.info({ delivery_id: delivery.id, outcome: result.outcome }, 'outcome recorded late')
        return
      } catch (error) {
        if (!isDatabaseUnavailable(error)) {
          logger.error({ delivery_id: delivery.id, error: describeError(error) }, 'outcome cannot be recorded')
          return
        }
      }
    }
    logger.error({ delivery_id: delivery.id, outcome: result.outcome }, 'outcome lost: the database stayed away')
  }

  return {
    record: async (delivery, reported) => {
      const result = toStorable(reported)
      const known = { ...delivery, ...result, finishedAt: new Date() }
      try {
        const finishedAt = await store.recordOutcome({
          organizationId: delivery.organizationId,
          id: delivery.id,
          result,
        })
        return finishedAt ? { ...known, finishedAt } : known
      } catch (error) {
        logger.warn({ delivery_id: delivery.id, error: describeError(error) }, 'outcome not recorded yet')
        const recorded = keepTrying(delivery, result).finally(() => waiting.delete(delivery.id))
        waiting.set(delivery.id, { delivery: known, recorded })
        return known
      }
    },
    find: (deliveryId) => waiting.get(deliveryId)?.delivery,
    get size() {
      return waiting.size
    },
    drain: async (timeoutMs) => {
      const all = Promise.all([...waiting.values()].map(({ recorded }) => recorded))
      await Promise.race([all, pause(timeoutMs, undefined, { ref: false })])
    },
    stop: () => stopping.abort(),
  }
}

const REASON_MAX_LENGTH = 2_000
const FIELD_MAX_LENGTH = 200

/**
 * The result as the log takes it, whatever an endpoint answered or an agent made up: a field's name may hold NUL, and be
 * as long as the payload.
 */
function toStorable(result: DeliveryResult): DeliveryResult {
  return {
    ...result,
    reason: result.reason && toLine(result.reason, REASON_MAX_LENGTH),
    answer: result.answer && truncateText(result.answer, ANSWER_MAX_LENGTH),
    mismatches:
      result.mismatches?.map(({ field, code, message }) => ({
        field: toLine(field, FIELD_MAX_LENGTH),
        code,
        message: toLine(message, REASON_MAX_LENGTH),
      })) ?? null,
  }
}

function toLine(text: string, limit: number): string {
  return truncateText(text.toWellFormed().replaceAll(/\p{Cc}/gu, '\uFFFD'), limit)
}
