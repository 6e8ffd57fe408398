import { type Database, type NewStart, recordStart, type StartOutcome } from '@workflow-service/database'
import type { GatewayMetrics } from './gateway-metrics.ts'

/** Records starts. */
export interface StartRecorder {
  /** As `recordStart`: rejects when nothing is known of what became of the start. */
  record(organizationId: string, start: NewStart): Promise<StartOutcome>
}

/** Counts what comes of them. */
export function createStartRecorder(options: {
  db: Pick<Database, 'pool'>
  metrics: Pick<GatewayMetrics, 'starts' | 'startBatches'>
}): StartRecorder {
  const { db, metrics } = options
  return {
    record: async (organizationId, start) => {
      const outcome = await recordStart(db, organizationId, start)
      metrics.starts.inc({ kind: outcome.kind })
      return outcome
    },
  }
}
