import { newRequestId } from './new-request-id.ts'
import type { NextFunction, Request, Response } from 'express'

const SANE_REQUEST_ID = /^[\w.:/+=-]{1,128}$/

/** The caller's request id if it sent a sane one (1 to 128 plain characters), else a new one. */
export function requestIdFrom(header: string | string[] | undefined): string {
  return typeof header === 'string' && SANE_REQUEST_ID.test(header) ? header : newRequestId()
}

/** Gives each request its id, in `res.locals.requestId` and in the answer's `X-Request-Id`. */
export function assignRequestId(req: Request, res: Response, next: NextFunction): void {
  const requestId = requestIdFrom(req.headers['x-request-id'])
  res.locals['requestId'] = requestId
  res.setHeader('X-Request-Id', requestId)
  next()
}
