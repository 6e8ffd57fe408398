import {
  INTERNAL_OPERATIONS,
  type DeliveriesLine,
  readTraceContext,
  RUN_JOURNAL_HEADER,
  RUN_JOURNAL_STATES,
} from '@workflow-service/contract'
import { isDatabaseUnavailable } from '@workflow-service/database'
import { createOperationCall, type OperationResult, requestIdFrom } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import type { InternalHandlers } from './internal-handlers.ts'
import { checkDelivery, sendPayload } from './send-payload.ts'

/** Sends several payloads, each as `sendPayload` does, and answers each as soon as its outcome is known. */
export function sendPayloads(ctx: DispatcherContext) {
  const send = createOperationCall({
    operation: INTERNAL_OPERATIONS.sendPayload,
    handler: sendPayload(ctx),
    rules: { body: checkDelivery },
    logger: ctx.logger,
    isDatabaseUnavailable,
  })
  return ({ body: { deliveries } }: Pick<Parameters<InternalHandlers['sendPayloads']>[0], 'body'>) => ({
    lines: deliveries.map(({ delivery_id, request_id, trace, body }, index) => {
      const parent = readTraceContext(trace as Readonly<Record<string, string>>)
      return ctx.tracing.trace({ name: 'sendPayload', kind: 'server', attributes: {}, parent }, async (span) => {
        const requestId = requestIdFrom(request_id)
        const response = await send({ params: { delivery_id }, body, requestId, trace: span.context })
        span.set({ 'http.response.status_code': response.status })
        if (response.status >= 500) span.fail(String(response.status))
        if (response.status !== 200) {
          ctx.logger.info({ request_id: requestId, delivery_id, status: response.status }, 'delivery.refused')
        }
        return toLine(index, response)
      })
    }),
  })
}

function toLine(index: number, { status, body, headers }: OperationResult): DeliveriesLine {
  const journal = RUN_JOURNAL_STATES.find((state) => state === headers[RUN_JOURNAL_HEADER]) ?? null
  return {
    index,
    status,
    journal,
    body: status === 200 ? toResult(body as Readonly<Record<string, unknown>>) : { ...body },
  }
}

function toResult(delivery: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { outcome, status, reason, answer, duration_ms } = delivery
  return { outcome, status, reason, answer, duration_ms }
}
