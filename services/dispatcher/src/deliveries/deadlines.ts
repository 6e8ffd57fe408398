import { PAYLOAD_DEADLINE_MS } from '@workflow-service/contract'

/**
 * A process that was delayed longer than this after its claim (paused, or short of CPU) no longer sends the payload.
 */
export const SEND_WITHIN_MS = 8_000

/**
 * Age at which a delivery without an outcome becomes `unknown`. No process can still be sending it: the delay before
 * the request takes at most 8 s and the request 30 s, which leaves 2 s to record the outcome.
 */
export const DELIVERY_DEADLINE_MS = SEND_WITHIN_MS + PAYLOAD_DEADLINE_MS + 2_000
