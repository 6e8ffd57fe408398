import {
  type Db,
  isDatabaseUnavailable,
  type NewStart,
  recordStart,
  recordStarts,
  type StartOutcome,
} from '@workflow-service/database'
import { ApiError, batchCalls, serviceUnavailable } from '@workflow-service/service-kit'
import type { GatewayMetrics } from '../gateway-metrics.ts'

interface QueuedStart {
  readonly organizationId: string
  readonly start: NewStart
}

const MAX_BATCH_SIZE = 128
const MAX_BATCH_BYTES = 1_048_576
/** With two, one batch travels while the other commits. */
const MAX_BATCHES_UNDER_WAY = 2
/** Less than the handler's timeout: a start that was answered 503 while it was queued is never recorded. */
const QUEUE_TIMEOUT_MS = 2_500

/**
 * Records the starts of all requests in flight in batches: one statement and one commit for what has arrived while the
 * last ones were under way. Each start keeps its own outcome; one that cannot be recorded with others is recorded
 * alone.
 */
export function createStartRecorder(db: Db, metrics: Pick<GatewayMetrics, 'starts' | 'startBatches'>) {
  /** Undefined for a start whose Idempotency-Key is also that of an earlier one of the batch. */
  const recordBatch = async (batch: readonly QueuedStart[]) => {
    const keys = new Set<string>()
    const distinct = batch.filter(({ start: { apiKeyId, idempotency } }) => {
      const before = keys.size
      return !idempotency || keys.add(`${apiKeyId} ${idempotency.key}`).size > before
    })
    metrics.startBatches.observe(distinct.length)
    const outcomes = await recordStarts(db, distinct)
    const byStart = new Map(distinct.map((queued, index) => [queued, outcomes[index]]))
    return batch.map((queued) => byStart.get(queued))
  }
  const enqueue = batchCalls(recordBatch, {
    maxSize: MAX_BATCH_SIZE,
    maxBytes: MAX_BATCH_BYTES,
    sizeOf: ({ start }) => Buffer.byteLength(start.context),
    concurrency: MAX_BATCHES_UNDER_WAY,
    queueTimeout: {
      ms: QUEUE_TIMEOUT_MS,
      error: () => serviceUnavailable('The database is too slow at the moment; nothing was started.'),
    },
  })

  return {
    /** Resolves once the start is committed or refused. After a database error it may have been recorded or not. */
    record: async (organizationId: string, start: NewStart): Promise<StartOutcome> => {
      const batched = await enqueue({ organizationId, start }).catch((error: unknown) => {
        if (isDatabaseUnavailable(error) || error instanceof ApiError) throw error
        // PostgreSQL refused the statement as a whole, so nothing of it was recorded. Another start may be the cause.
        return undefined
      })
      const isAlone = batched === undefined || batched.kind === 'session_locked'
      const outcome = isAlone ? await recordStart(db, organizationId, start) : batched
      metrics.starts.inc({ kind: outcome.kind })
      return outcome
    },
  }
}
