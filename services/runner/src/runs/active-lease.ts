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
   * A write that may release the lease is under way, or has released it: a renewal that misses the lease does not mean
   * that it is lost. Set by `whileEnding` only.
   */
  isEnding: boolean
}

/** Makes a write that may release the lease. Afterwards the lease is ending only if the write has released it. */
export async function whileEnding<Result>(
  lease: ActiveLease,
  write: () => Promise<Result>,
  isReleased: (result: Result) => boolean,
): Promise<Result> {
  lease.isEnding = true
  let wasReleased = false
  try {
    const result = await write()
    wasReleased = isReleased(result)
    return result
  } finally {
    lease.isEnding = wasReleased
  }
}
