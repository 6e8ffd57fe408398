import {
  claimDeliveries,
  type Database,
  type DeliveryClaim,
  type DeliveryClaimRequest,
  type DeliveryOutcomeRecord,
  isDatabaseAway,
  recordOutcomes,
} from '@workflow-service/database'
import { microBatch } from '@workflow-service/service-kit'

/** The two writes of every delivery. Those that many deliveries make at once go together in one statement and one commit. */
export interface DeliveryStore {
  /** Records the payload as `in_flight`. Only `claimed` may be sent, by the one caller that got it. */
  claim(request: DeliveryClaimRequest): Promise<DeliveryClaim>
  /** Records what came of it, and resolves with when; with undefined when nothing was to be recorded. */
  recordOutcome(record: DeliveryOutcomeRecord): Promise<Date | undefined>
}

const MAX_BATCH = 100

export function createDeliveryStore(db: Pick<Database, 'pool'>): DeliveryStore {
  // A statement that one bad item spoils, such as text that cannot be stored, must not fail the others.
  const options = { maxSize: MAX_BATCH, isItemFault: (error: unknown) => !isDatabaseAway(error) }
  return {
    claim: microBatch((requests: DeliveryClaimRequest[]) => claimDeliveries(db, requests), options),
    recordOutcome: microBatch((records: DeliveryOutcomeRecord[]) => recordOutcomes(db, records), options),
  }
}
