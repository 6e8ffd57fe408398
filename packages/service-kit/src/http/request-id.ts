import { randomUUIDv7 } from 'node:crypto'
import type { NextFunction, Request, Response } from 'express'

const VALID_REQUEST_ID = /^[\w.:/+=-]{1,128}$/

/** Creates a request id: a UUIDv7, so that ids sort by time in the logs. */
export function newRequestId(): string {
  return randomUUIDv7()
}

/** Returns the caller's `X-Request-Id` if it has 1 to 128 plain characters, else a new id. */
export function requestIdFrom(header: string | string[] | undefined): string {
  return typeof header === 'string' && VALID_REQUEST_ID.test(header) ? header : newRequestId()
}

/** Assigns each request its id, in `res.locals.requestId` and in the response's `X-Request-Id`. */
export function assignRequestId(req: Request, res: Response, next: NextFunction): void {
  const requestId = requestIdFrom(req.headers['x-request-id'])
  res.locals.requestId = requestId
  res.setHeader('X-Request-Id', requestId)
  next()
}
