import type { TraceContext } from '@workflow-service/contract'

declare global {
  namespace Express {
    /** What the handlers of one request share, in `res.locals`. Services add who calls. */
    interface Locals {
      requestId: string
      /** Names and values in turn, to be sent with the response. */
      responseHeaders?: string[]
      /** The operation that answers the request; undefined before it is found. */
      operationId?: string
      /** The span of the request; undefined without tracing. */
      trace?: TraceContext | null
    }
  }
}
