import { setTimeout as sleep } from 'node:timers/promises'
import { ANSWER_MAX_LENGTH, type DeliveryOut, type RunJournalState, truncateText } from '@workflow-service/contract'
import { type DeliveryJournal, type DeliveryResult, isDatabaseUnavailable } from '@workflow-service/database'
import { backoff, describeError, type Logger, withTimeout } from '@workflow-service/service-kit'
import type { DeliveryStore } from './delivery-store.ts'

/** What an outcome writes into the journal of its run. */
export interface JournalUpdate extends DeliveryJournal {
  readonly toStep: (result: DeliveryResult) => string
}

/** A delivery with its outcome, and what is written of it in the journal of its run. */
export interface RecordedDelivery extends DeliveryOut {
  readonly journalState?: RunJournalState | undefined
}

const NO_OUTCOME = {
  outcome: 'in_flight',
  status: null,
  reason: null,
  mismatches: null,
  duration_ms: null,
  answer: null,
  finished_at: null,
} as const

/** Returns a delivery that has just been recorded and has no outcome yet. */
export function inFlightDelivery(recorded: Omit<DeliveryOut, keyof typeof NO_OUTCOME>): DeliveryOut {
  return { ...recorded, ...NO_OUTCOME }
}

/** After this time the outcome is given up. Its delivery has been `unknown` for long. */
const GIVE_UP_AFTER_MS = 600_000

/** Creates a recorder that writes through the store. */
export function createOutcomeRecorder(options: {
  store: Pick<DeliveryStore, 'recordOutcome' | 'recordRunOutcome'>
  logger: Logger
}) {
  const { store, logger } = options
  const unrecorded = new Map<string, { delivery: DeliveryOut; recorded: Promise<void> }>()
  const stopping = new AbortController()

  const retry = async ({ id, organization_id: organizationId }: DeliveryOut, result: DeliveryResult): Promise<void> => {
    const nextDelayMs = backoff({ firstMs: 250, maxMs: 1_000 })
    const giveUpAtMs = performance.now() + GIVE_UP_AFTER_MS
    while (!stopping.signal.aborted && performance.now() < giveUpAtMs) {
      await sleep(nextDelayMs(), undefined, { signal: stopping.signal }).catch(() => {})
      try {
        await store.recordOutcome({ organizationId, id, result })
        logger.info({ delivery_id: id, outcome: result.outcome }, 'delivery.outcome_recorded')
        return
      } catch (error) {
        if (!isDatabaseUnavailable(error)) {
          logger.error({ delivery_id: id, error: describeError(error) }, 'delivery.outcome_refused')
          return
        }
      }
    }
    logger.error({ delivery_id: id, outcome: result.outcome }, 'delivery.outcome_lost')
  }

  return {
    /**
     * Records the result and returns the delivery with it. Never rejects: a failed write is retried in the background,
     * without the journal, which the runner writes then.
     */
    record: async (
      delivery: DeliveryOut,
      reported: DeliveryResult,
      journal?: JournalUpdate | null,
    ): Promise<RecordedDelivery> => {
      const { id, organization_id: organizationId } = delivery
      const result = toStorable(reported)
      const { rejected_answer: _forPeople, answer_headers: _forPeopleToo, ...outcome } = result
      const finished = { ...delivery, ...outcome, finished_at: new Date().toISOString() }
      try {
        if (journal) {
          const step = journal.toStep(result)
          const written = await store.recordRunOutcome({
            organizationId,
            id,
            result,
            journal: { ...journal, result: step },
          })
          if (!written) return finished
          const journalState = written.isEnded ? 'succeeded' : written.isWritten ? 'written' : undefined
          return { ...finished, finished_at: written.finishedAt.toISOString(), journalState }
        }
        const finishedAt = await store.recordOutcome({ organizationId, id, result })
        return finishedAt ? { ...finished, finished_at: finishedAt.toISOString() } : finished
      } catch (error) {
        logger.warn({ delivery_id: id, error: describeError(error) }, 'delivery.outcome_delayed')
        const recorded = retry(delivery, result).finally(() => unrecorded.delete(id))
        unrecorded.set(id, { delivery: finished, recorded })
        return finished
      }
    },
    /** Returns a delivery whose outcome is in memory and not yet in the database. */
    find: (deliveryId: string) => unrecorded.get(deliveryId)?.delivery,
    /** How many outcomes are not yet in the database. */
    get size() {
      return unrecorded.size
    },
    /** Waits until all outcomes are recorded, at most for this time. */
    drain: async (timeoutMs: number) => {
      const all = Promise.all([...unrecorded.values()].map(({ recorded }) => recorded))
      await withTimeout(all, timeoutMs).catch(() => {})
    },
    /** Stops retrying. The outcomes in memory are lost; their deliveries become `unknown`. */
    stop: () => stopping.abort(),
  }
}

const REASON_MAX_LENGTH = 2_000
const FIELD_MAX_LENGTH = 200
/** Of at most 4 KiB, which redaction may have made longer. */
const REJECTED_ANSWER_MAX_LENGTH = 4_096

/** Makes texts storable: the name of a field that a model made up may contain NUL and be as long as the payload. */
function toStorable(result: DeliveryResult): DeliveryResult {
  return {
    ...result,
    reason: result.reason && toLine(result.reason, REASON_MAX_LENGTH),
    answer: result.answer && truncateText(result.answer, ANSWER_MAX_LENGTH),
    rejected_answer: result.rejected_answer ? truncateText(result.rejected_answer, REJECTED_ANSWER_MAX_LENGTH) : null,
    mismatches:
      result.mismatches?.map(({ field, code, message }) => ({
        field: toLine(field, FIELD_MAX_LENGTH),
        code,
        message: toLine(message, REASON_MAX_LENGTH),
      })) ?? null,
  }
}

function toLine(text: string, maxLength: number): string {
  return truncateText(text.toWellFormed().replaceAll(/\p{Cc}/gu, '\uFFFD'), maxLength)
}
