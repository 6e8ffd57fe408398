import { INTERNAL_OPERATIONS } from '@workflow-service/contract'
import { isDatabaseUnavailable } from '@workflow-service/database'
import {
  createOperationCall,
  type OperationCall,
  type OperationResult,
  serviceUnavailable,
  toErrorResponse,
  withTimeout,
} from '@workflow-service/service-kit'
import { BODY_MAX_BYTES } from './app.ts'
import type { DispatcherContext } from './dispatcher-context.ts'
import { lookupHandlers } from './routes/lookups.ts'
import { checkDelivery, sendPayload } from './routes/send-payload.ts'

/** The calls of a runner in the same process (`services/compact`). */
export type LocalCalls = ReturnType<typeof createLocalCalls>

/** Creates them. As the server of the internal API does, a stop takes no further call and waits for those under way. */
export function createLocalCalls(ctx: DispatcherContext) {
  const common = { maxBytes: BODY_MAX_BYTES, logger: ctx.logger, isDatabaseUnavailable }
  const send = createOperationCall({
    operation: INTERNAL_OPERATIONS.sendPayload,
    handler: sendPayload(ctx),
    rules: { body: checkDelivery },
    ...common,
  })
  const lookUp = createOperationCall({
    operation: INTERNAL_OPERATIONS.callLookup,
    handler: lookupHandlers(ctx).callLookup,
    rules: {},
    ...common,
  })
  const underWay = new Set<Promise<OperationResult>>()
  let isStopping = false
  const tracked =
    (call: typeof send) =>
    async (request: OperationCall): Promise<OperationResult> => {
      if (isStopping) return refusal(request.requestId)
      const response = call(request)
      underWay.add(response)
      try {
        return await response
      } finally {
        underWay.delete(response)
      }
    }
  return {
    sendPayload: tracked(send),
    callLookup: tracked(lookUp),
    stop: async (graceMs: number): Promise<void> => {
      isStopping = true
      await withTimeout(Promise.all(underWay), graceMs).catch(() => {})
    },
  }
}

function refusal(requestId: string): OperationResult {
  const error = serviceUnavailable('The dispatcher stops. Nothing was sent. Repeat the call with the same id.')
  return { status: error.status, body: toErrorResponse(error, requestId), headers: {} }
}
