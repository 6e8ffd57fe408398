import type { Lease } from '@workflow-service/database'

/**
 * A session lease under which this process executes runs. The reason of both signals is the error that ends the run: a
 * LeaseLostError or a RunInterruptedError.
 */
export interface ActiveLease extends Lease {
  /** Aborts when the lease is lost or the runner begins to stop: the run ends at its next step boundary. */
  readonly interrupted: AbortSignal
  /** Aborts when the lease is lost or the runner's grace period is over: calls under way are abandoned. */
  readonly abandoned: AbortSignal
  readonly isLost: boolean
  /**
   * A statement that may release the lease is under way: a renewal that misses the lease does not mean that it is lost.
   */
  isEnding: boolean
}
