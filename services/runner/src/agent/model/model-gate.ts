/**
 * The pace of requests to a model whose API limits them, which all runners share. While the API limits none, requests
 * pass at once.
 */
export interface ModelGate {
  /**
   * Reserves a time for a request, at most `maxDelayMs` and about a second from now. If the next free time is later,
   * nothing is reserved, and `delayMs` is when the run may try again, where organizations take turns. It is 0 while
   * there is no limit. `isRepeated`: the run sent no request in the time that it reserved last, so the pace does not
   * count this one again.
   */
  reserve(
    model: string,
    options: { readonly organizationId: string; readonly maxDelayMs: number; readonly isRepeated: boolean },
    abort: AbortSignal,
  ): Promise<ModelSlot>
  /** Whether the API has asked to wait since a time was reserved, so that another one is needed. */
  isBlocked(model: string): boolean
  /** Records that the API limited a request and asked for this delay. */
  recordLimit(model: string, retryAfterMs: number, abort: AbortSignal): Promise<void>
}

export interface ModelSlot {
  readonly delayMs: number
  readonly isReserved: boolean
}

/** Of a process of its own, which nothing shares: every request passes. */
export const OPEN_GATE: ModelGate = {
  reserve: () => Promise.resolve({ delayMs: 0, isReserved: true }),
  isBlocked: () => false,
  recordLimit: () => Promise.resolve(),
}
