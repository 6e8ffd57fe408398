import type { DeliveryOut } from '@workflow-service/contract'
import type { DispatcherContext } from '../dispatcher-context.ts'

/** Counts the delivery in the metrics, notifies of it, and writes a log line with ids that connect it to its run. */
export function reportDelivery(
  ctx: Pick<DispatcherContext, 'logger' | 'deliveryMetrics' | 'changeNotices'>,
  { id, organization_id, source_id, run_id, session_id, request_id, kind, outcome, status, ...delivery }: DeliveryOut,
): void {
  const { reason, duration_ms } = delivery
  ctx.deliveryMetrics.count(kind, outcome, duration_ms)
  ctx.changeNotices.add(organization_id, 'deliveries')
  const ids = { request_id, organization_id, source_id, delivery_id: id, run_id, session_id }
  ctx.logger.info({ ...ids, kind, outcome, status, reason, duration_ms }, 'delivery.answered')
}
