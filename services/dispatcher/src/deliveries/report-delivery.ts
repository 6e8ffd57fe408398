import type { Delivery } from '@workflow-service/database'
import type { DispatcherContext } from '../dispatcher-context.ts'

/** Counts the delivery in the metrics, notifies of it, and writes a log line with ids that connect it to its run. */
export function reportDelivery(
  ctx: Pick<DispatcherContext, 'logger' | 'deliveryMetrics' | 'changeNotices'>,
  delivery: Delivery,
): void {
  ctx.deliveryMetrics.count(delivery.kind, delivery.outcome, delivery.durationMs)
  ctx.changeNotices.add(delivery.organizationId, 'deliveries')
  ctx.logger.info(
    {
      request_id: delivery.requestId,
      organization_id: delivery.organizationId,
      source_id: delivery.sourceId,
      delivery_id: delivery.id,
      run_id: delivery.runId,
      session_id: delivery.sessionId,
      kind: delivery.kind,
      outcome: delivery.outcome,
      status: delivery.status,
      reason: delivery.reason,
      duration_ms: delivery.durationMs,
    },
    'delivery.answered',
  )
}
