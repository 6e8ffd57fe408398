import { PAYLOAD_DEADLINE_MS } from '@workflow-service/contract'

/**
 * A process that was delayed longer than this after its claim (paused, or short of CPU) no longer sends the payload.
 */
export const SEND_WITHIN_MS = 8_000

/** How long after the beginning of a stop a claimed payload is still sent: the stop would not wait for a later one. */
export const SEND_AFTER_STOP_MS = 500

/** A stop waits for the requests in flight: 0.5 s for the last to be sent, 30 s for the response, 0.5 s to record. */
export const STOP_GRACE_MS = SEND_AFTER_STOP_MS + PAYLOAD_DEADLINE_MS + 500

/**
 * Age at which a delivery without an outcome becomes `unknown`. No process can still be sending it: the delay before
 * the request takes at most 8 s and the request 30 s, which leaves 2 s to record the outcome.
 */
export const DELIVERY_DEADLINE_MS = SEND_WITHIN_MS + PAYLOAD_DEADLINE_MS + 2_000
