import type { Request, RequestHandler, Response } from 'express'
import type { Logger } from '../logger.ts'
import { onceClosed } from './response-state.ts'

export interface RequestLogOptions {
  readonly logger: Logger
  /** Default: `info`. */
  readonly levelOf?: (req: Request, res: Response) => 'debug' | 'info'
  /** Further fields of the log line. Not called for a level that is not logged. */
  readonly fieldsOf?: (res: Response) => Readonly<Record<string, unknown>>
  /** Called for each request, also if it is not logged. */
  readonly onAnswered?: (res: Response, durationMs: number) => void
}

/** Logs each request when its response ends, or is cut off. `res.locals.operationId` is set by `serveOperations`. */
export function logRequests(options: RequestLogOptions): RequestHandler {
  const { logger, levelOf = () => 'info', fieldsOf = () => ({}), onAnswered } = options
  return (req, res, next) => {
    const startedMs = performance.now()
    // A router that serves a mounted path changes `req.path` meanwhile.
    const { path } = req
    onceClosed(res, () => {
      const durationMs = performance.now() - startedMs
      onAnswered?.(res, durationMs)
      const level = levelOf(req, res)
      if (!logger.isLevelEnabled(level)) return
      const { requestId, operationId } = res.locals
      const fields = {
        request_id: requestId,
        operation: operationId ?? 'none',
        method: req.method,
        path,
        status: res.statusCode,
        duration_ms: Math.round(durationMs * 10) / 10,
        is_cut_off: !res.writableFinished,
        ...fieldsOf(res),
      }
      logger[level](fields, 'request.answered')
    })
    next()
  }
}
