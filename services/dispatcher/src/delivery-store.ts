import {
  claimDeliveries,
  type Database,
  type DeliveryClaim,
  type DeliveryClaimRequest,
  type DeliveryOutcomeRecord,
  isStatementError,
  recordOutcomes,
} from '@workflow-service/database'
import { batchCalls, serviceUnavailable } from '@workflow-service/service-kit'

/** The two writes of every delivery. Those that many deliveries make at once go together in one statement and one commit. */
export interface DeliveryStore {
  /**
   * Records the payload as `in_flight`. Only `claimed` may be sent, by the one caller that got it.
   * @throws ApiError 503 when the database keeps others so long that it was not asked.
   */
  claim(request: DeliveryClaimRequest): Promise<DeliveryClaim>
  /** Records what came of it, and resolves with when; with undefined when nothing was to be recorded. */
  recordOutcome(record: DeliveryOutcomeRecord): Promise<Date | undefined>
}

const MAX_BATCH = 100
/**
 * Together with the time of a statement less than the hold-up after which nothing is sent any more: whoever is told 503
 * asks again, while a payload that is claimed too late is lost.
 */
const MAX_CLAIM_WAIT_MS = 2_500

export function createDeliveryStore(db: Pick<Database, 'pool'>): DeliveryStore {
  const options = { maxSize: MAX_BATCH, isItemError: isStatementError }
  return {
    claim: batchCalls((requests: DeliveryClaimRequest[]) => claimDeliveries(db, requests), {
      ...options,
      queueTimeout: { ms: MAX_CLAIM_WAIT_MS, error: tooSlow },
    }),
    recordOutcome: batchCalls((records: DeliveryOutcomeRecord[]) => recordOutcomes(db, records), options),
  }
}

function tooSlow(): Error {
  return serviceUnavailable('The database is too slow at the moment; ask again with the same id.')
}
