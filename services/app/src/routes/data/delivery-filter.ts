import type { ResendJobIn } from '@workflow-service/contract'
import type { DeliveryListQuery } from '@workflow-service/database'
import { toDate } from '../paging.ts'

/** What a request asks for of the deliveries of all sources. */
export function toDeliveryFilter(
  asked: Omit<ResendJobIn, 'per_second' | 'ids'>,
): Omit<DeliveryListQuery, 'limit' | 'after' | 'kind'> {
  const { source_id: sourceId, workflow_id: workflowId, outcome, status, search } = asked
  return {
    sourceId,
    workflowId,
    outcome,
    status,
    search,
    isSentAgain: asked.sent_again && asked.sent_again === 'yes',
    needsAttention: asked.needs_attention && asked.needs_attention === 'yes',
    since: toDate(asked.since),
    until: toDate(asked.until),
  }
}
