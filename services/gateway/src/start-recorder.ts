import {
  type Database,
  isDatabaseUnavailable,
  type NewStart,
  recordStart,
  recordStarts,
  type StartOutcome,
} from '@workflow-service/database'
import { ApiError, batchCalls, serviceUnavailable } from '@workflow-service/service-kit'
import type { GatewayMetrics } from './gateway-metrics.ts'

/** Records starts. */
export interface StartRecorder {
  /** As `recordStart`: when it rejects with an error of the database, nothing is known of what became of the start. */
  record(organizationId: string, start: NewStart): Promise<StartOutcome>
}

interface WaitingStart {
  readonly organizationId: string
  readonly start: NewStart
}

/** `alone`: not done, since it would have held up or broken the others. */
type BatchOutcome = StartOutcome | 'alone'

const MAX_BATCH = 128
/** Two, so that one is on its way while the other commits. */
const CONCURRENCY = 2
/** Less than the handler's deadline: what was answered 503 before it was sent is not recorded later on. */
const QUEUE_TIMEOUT_MS = 2_500

/**
 * Groups the starts of all requests in flight: a statement takes what has come in while the last ones were under way, and
 * costs one commit. Each start keeps its own outcome: what waits for a session's row, repeats an Idempotency-Key of the
 * same batch, or was in a batch that failed, is done again alone.
 */
export function createStartRecorder(options: {
  db: Pick<Database, 'pool'>
  metrics: Pick<GatewayMetrics, 'starts' | 'startBatches'>
}): StartRecorder {
  const { db, metrics } = options

  const recordBatch = async (batch: readonly WaitingStart[]): Promise<BatchOutcome[]> => {
    const keys = new Set<string>()
    const outcomes = batch.map(({ start }): BatchOutcome | undefined => {
      if (!start.idempotency) return undefined
      const key = `${start.apiKeyId} ${start.idempotency.key}`
      if (keys.has(key)) return 'alone'
      keys.add(key)
      return undefined
    })
    const together = batch.filter((_start, index) => outcomes[index] === undefined)
    metrics.startBatches.observe(together.length)
    const results = together.length === 0 ? [].values() : (await recordStarts(db, together)).values()
    return outcomes.map((outcome) => outcome ?? toBatchOutcome(results.next().value))
  }
  const enqueue = batchCalls(recordBatch, {
    maxSize: MAX_BATCH,
    concurrency: CONCURRENCY,
    queueTimeout: {
      ms: QUEUE_TIMEOUT_MS,
      error: () => serviceUnavailable('The database is too slow at the moment; nothing was started.'),
    },
  })

  const record = async (organizationId: string, start: NewStart): Promise<StartOutcome> => {
    let outcome: BatchOutcome
    try {
      outcome = await enqueue({ organizationId, start })
    } catch (error) {
      if (isDatabaseUnavailable(error) || error instanceof ApiError) throw error
      // The statement was refused as a whole, hence nothing was recorded; another start may be to blame.
      outcome = 'alone'
    }
    return outcome === 'alone' ? recordStart(db, organizationId, start) : outcome
  }
  return {
    record: async (organizationId, start) => {
      const outcome = await record(organizationId, start)
      metrics.starts.inc({ kind: outcome.kind })
      return outcome
    },
  }
}

function toBatchOutcome(outcome: StartOutcome | undefined): BatchOutcome {
  return outcome === undefined || outcome.kind === 'session_busy' ? 'alone' : outcome
}
