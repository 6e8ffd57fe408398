import type { Delivery } from '@workflow-service/database'

type Known =
  | 'id'
  | 'organizationId'
  | 'sourceId'
  | 'kind'
  | 'requestBody'
  | 'sessionId'
  | 'runId'
  | 'requestId'
  | 'resendOf'
  | 'sentBy'

/** Returns a delivery that has just been recorded and has no outcome yet. */
export function inFlightDelivery(fields: Pick<Delivery, Known | 'createdAt'>): Delivery {
  return {
    ...fields,
    outcome: 'in_flight',
    status: null,
    reason: null,
    mismatches: null,
    durationMs: null,
    answer: null,
    finishedAt: null,
  }
}
