import { setTimeout as sleep } from 'node:timers/promises'
import {
  claimDeliveries,
  claimResend,
  type Db,
  type DeliveryClaim,
  type DeliveryClaimRequest,
  type DeliveryOutcomeRecord,
  isDatabaseUnavailable,
  isStatementError,
  recordOutcomes,
  recordRunOutcomes,
  removeUnsentDelivery,
  type RunOutcomeRecord,
} from '@workflow-service/database'
import { backoff, batchCalls, InFlightLimiter, serviceUnavailable, withTimeout } from '@workflow-service/service-kit'
import { DELIVERY_DEADLINE_MS } from './deadlines.ts'

/**
 * The writes of every delivery. Concurrent writes share one statement and one commit, except the claim of a resend.
 */
export type DeliveryStore = ReturnType<typeof createDeliveryStore>

const MAX_BATCH_SIZE = 100
/** Keeps a statement with large payloads well within its time-out. */
const MAX_BATCH_BYTES = 1_048_576

/**
 * Shorter than the 8 s after which a claimed payload is no longer sent, minus the time of a statement: the caller of a
 * claim that fails in the queue can repeat it at once, but a claim that is made too late must be removed first.
 */
const CLAIM_QUEUE_TIMEOUT_MS = 2_500
/** Shorter than the same 8 s. */
const CLAIM_TIMEOUT_MS = 7_000
/** PostgreSQL may make a claim later, as when its host was halted. So long the answer is awaited, to remove it. */
const LATE_CLAIM_TIMEOUT_MS = 30_000

/** Connections for claims of resends: payloads of runs need the rest. */
const MAX_RESEND_CLAIMS = 4

/** Creates the store on the database's connection pool. */
export function createDeliveryStore(db: Db) {
  const options = { maxSize: MAX_BATCH_SIZE, isItemError: isStatementError }
  const queueTimeout = { ms: CLAIM_QUEUE_TIMEOUT_MS, error: databaseTooSlow }
  const claimInTime = async (requests: DeliveryClaimRequest[]): Promise<readonly DeliveryClaim[]> => {
    const claims = claimDeliveries(db, requests, LATE_CLAIM_TIMEOUT_MS)
    return await withTimeout(claims, CLAIM_TIMEOUT_MS, () => {
      void claims.then((made) => removeClaims(db, requests, made)).catch(() => {})
      // As that of pg: the database is unavailable.
      return new Error('Query read timeout')
    })
  }
  const claim = batchCalls(claimInTime, {
    ...options,
    maxBytes: MAX_BATCH_BYTES,
    sizeOf: ({ requestBody, journal }) =>
      Buffer.byteLength(requestBody) + (journal?.steps ?? []).reduce((sum, { data }) => sum + data.length, 0),
    queueTimeout,
  })
  // In the database, claims of one payload wait for each other. Here, they leave the connections to others meanwhile.
  const resendClaims = new InFlightLimiter({
    total: MAX_RESEND_CLAIMS,
    perKey: 1,
    waitMs: CLAIM_QUEUE_TIMEOUT_MS,
    maxWaiting: Infinity,
    maxWaitingPerKey: Infinity,
  })
  return {
    /**
     * Records the payload as `in_flight`. Only the one caller that gets `claimed` may send it.
     * @throws ApiError 503 if the claim waited too long for earlier ones; it was not written then.
     */
    claim: (request: DeliveryClaimRequest) => {
      const { resend } = request
      if (!resend) return claim(request)
      const claimOne = () => claimResend(db, { ...request, resend })
      return resendClaims.run(resend.firstId, claimOne, { refuse: databaseTooSlow })
    },
    /** Records an outcome. Resolves to the time, or to undefined if the delivery already had one. */
    recordOutcome: batchCalls((records: DeliveryOutcomeRecord[]) => recordOutcomes(db, records), options),
    /** The same, with the journal of the run. */
    recordRunOutcome: batchCalls((records: RunOutcomeRecord[]) => recordRunOutcomes(db, records), options),
  }
}

/**
 * Removes claims whose callers were answered 503 before they were made, so that their ids can be claimed anew. Repeats
 * it while the database is unavailable, until the claims become `unknown`.
 */
async function removeClaims(
  db: Db,
  requests: readonly DeliveryClaimRequest[],
  claims: readonly DeliveryClaim[],
): Promise<void> {
  const nextDelayMs = backoff({ firstMs: 50, maxMs: 1_000 })
  const giveUpAtMs = performance.now() + DELIVERY_DEADLINE_MS
  let left = requests.flatMap(({ organizationId, id }, index) => {
    const claim = claims[index]!
    const isClaimed = claim.kind === 'claimed'
    return isClaimed ? [{ organization_id: organizationId, id, created_at: claim.createdAt.toISOString() }] : []
  })
  for (;;) {
    const failed: typeof left = []
    for (const claim of left) {
      if (performance.now() > giveUpAtMs) return
      await removeUnsentDelivery(db, claim).catch((error: unknown) => {
        if (isDatabaseUnavailable(error)) failed.push(claim)
      })
    }
    left = failed
    if (left.length === 0) return
    await sleep(nextDelayMs(), undefined, { ref: false })
  }
}

function databaseTooSlow(): Error {
  return serviceUnavailable('The database is too slow at the moment. Repeat the call with the same id.')
}
