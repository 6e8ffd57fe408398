import { readTraceContext } from '@workflow-service/contract'
import type { RequestHandler, Response } from 'express'
import type { SpanAttributes, Tracing } from '../tracing.ts'
import { onceClosed } from './response-state.ts'
import type { OperationTable } from './operations.ts'

const UNTRACED: readonly string[] = ['text/event-stream', 'application/x-ndjson']

/**
 * Makes each request a span from its arrival to the end of its response, in the trace of its caller, named after the
 * operation that answers it. Sets `res.locals.trace`. Not for open-ended streams, whose spans would last for hours, nor
 * for a request that belongs to several traces (NDJSON).
 */
export function traceRequests(
  tracing: Tracing,
  operations: OperationTable,
  attributesOf: (res: Response) => SpanAttributes = () => ({}),
): RequestHandler {
  return (req, res, next) => {
    if (!tracing.isOn || UNTRACED.includes(req.headers.accept ?? '')) return next()
    const { method } = req
    const start = {
      name: method,
      kind: 'server',
      attributes: { 'http.request.method': method },
      parent: readTraceContext(req.headers),
    } as const
    void tracing.trace(start, (span) => {
      res.locals.trace = span.context
      const answered = new Promise<void>((resolve) => {
        onceClosed(res, () => {
          // The path itself may have anything in it.
          const route = operations[res.locals.operationId ?? '']?.path ?? null
          if (route !== null) span.rename(`${method} ${route}`)
          span.set({ 'http.route': route, 'http.response.status_code': res.statusCode, ...attributesOf(res) })
          if (res.statusCode >= 500) span.fail(String(res.statusCode))
          resolve()
        })
      })
      next()
      return answered
    })
  }
}
