import {
  type Db,
  isDatabaseUnavailable,
  type NewStart,
  type QueuedStart,
  recordInSession,
  recordStart,
  recordStarts,
  type StartOutcome,
} from '@workflow-service/database'
import { ApiError, batchCalls, serviceUnavailable } from '@workflow-service/service-kit'
import type { GatewayMetrics } from '../gateway-metrics.ts'

const MAX_BATCH_SIZE = 128
const MAX_BATCH_BYTES = 1_048_576
/** With two, one batch travels while the other commits. */
const MAX_BATCHES_UNDER_WAY = 2
/** Less than the handler's timeout: a start that was answered 503 while it was queued is never recorded. */
const QUEUE_TIMEOUT_MS = 2_500

interface WaitingStart extends QueuedStart {
  readonly sinceMs: number
}

/** Undefined for a start that is to be recorded alone. */
type BatchOutcome = Awaited<ReturnType<typeof recordStarts>>[number] | undefined

/**
 * Records the starts of all requests in flight in batches: one statement and one commit for what has arrived while the
 * last ones were under way. Each start keeps its own outcome; one that cannot be recorded with others is recorded
 * alone, and those of a locked session wait together: each would take a connection from other organizations.
 */
export function createStartRecorder(db: Db, metrics: Pick<GatewayMetrics, 'starts' | 'startBatches'>) {
  const batchStarts = (record: typeof recordStarts, concurrency: number) => {
    const enqueue = batchCalls<WaitingStart, BatchOutcome>(
      async (batch) => {
        const firsts = new Map(batch.toReversed().map((queued) => [nameOf(queued), queued]))
        const distinct = batch.filter((queued) => firsts.get(nameOf(queued)) === queued)
        metrics.startBatches.observe(distinct.length)
        const outcomes = await record(db, distinct)
        const byStart = new Map(distinct.map((queued, index) => [queued, outcomes[index]]))
        return batch.map((queued) => {
          const first = firsts.get(nameOf(queued))!
          const outcome = byStart.get(first)
          return first === queued ? outcome : repeatOutcome(outcome, first, queued)
        })
      },
      {
        maxSize: MAX_BATCH_SIZE,
        maxBytes: MAX_BATCH_BYTES,
        sizeOf: ({ start }) => Buffer.byteLength(start.context),
        concurrency,
        queueTimeout: {
          ms: QUEUE_TIMEOUT_MS,
          // In the queue of all starts, and in that of a locked session after it.
          since: ({ sinceMs }) => sinceMs,
          error: () => serviceUnavailable('The database is too slow at the moment; nothing was started.'),
        },
      },
    )
    return (queued: WaitingStart): Promise<BatchOutcome> =>
      enqueue(queued).catch((error: unknown) => {
        if (isDatabaseUnavailable(error) || error instanceof ApiError) throw error
        // PostgreSQL refused the statement as a whole, so nothing of it was recorded. Another start may be the cause.
        return undefined
      })
  }
  const enqueue = batchStarts(recordStarts, MAX_BATCHES_UNDER_WAY)
  /** The starts of sessions that other transactions have locked, and how many there are. */
  const locked = new Map<string, { readonly enqueue: typeof enqueue; count: number }>()

  const enqueueInSession = async (queued: WaitingStart, sessionId: string): Promise<BatchOutcome> => {
    const record: typeof recordStarts = (_db, starts) => recordInSession(db, sessionId, starts)
    const session = locked.get(sessionId) ?? { enqueue: batchStarts(record, 1), count: 0 }
    locked.set(sessionId, session)
    session.count += 1
    try {
      return await session.enqueue(queued)
    } finally {
      session.count -= 1
      if (session.count === 0) locked.delete(sessionId)
    }
  }

  return {
    /** Resolves once the start is committed or refused. After a database error it may have been recorded or not. */
    record: async (organizationId: string, start: NewStart): Promise<StartOutcome> => {
      const queued = { organizationId, start, sinceMs: performance.now() }
      const first = await enqueue(queued)
      const isLocked = first?.kind === 'session_locked' && start.sessionId !== null
      const batched = isLocked ? await enqueueInSession(queued, start.sessionId) : first
      const isAlone = batched === undefined || batched.kind === 'session_locked'
      const outcome = isAlone ? await recordStart(db, organizationId, start) : batched
      metrics.starts.inc({ kind: outcome.kind })
      return outcome
    },
  }
}

/** What no two starts of a batch have in common: the Idempotency-Key, or the start itself without one. */
function nameOf(queued: QueuedStart): string | QueuedStart {
  const { apiKeyId, idempotency } = queued.start
  return idempotency ? `${apiKeyId} ${idempotency.key}` : queued
}

/** Returns the outcome of a start with the Idempotency-Key of an earlier one. Its own statement would give the same. */
function repeatOutcome(outcome: BatchOutcome, first: QueuedStart, repeated: QueuedStart): BatchOutcome {
  const [firstSha256, sha256] = [first, repeated].map(({ start }) => start.idempotency!.requestSha256)
  const isSame = firstSha256!.equals(sha256!)
  if (outcome?.kind === 'accepted' || outcome?.kind === 'replayed') {
    return isSame ? { ...outcome, kind: 'replayed' } : { kind: 'idempotency_conflict' }
  }
  return isSame || outcome?.kind === 'session_locked' ? outcome : undefined
}
