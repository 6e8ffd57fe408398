import type { ServerResponse } from 'node:http'
import type { ErrorResponse } from '@workflow-service/contract'
import type { ErrorRequestHandler, RequestHandler, Response } from 'express'
import { ApiError, notFound } from './api-error.ts'
import { describeError, type Logger } from './logger.ts'
import { writeJson } from './write-json.ts'

/** The body of every error (contract 7). */
export function toErrorResponse(error: ApiError, requestId: string): ErrorResponse {
  return {
    error: {
      code: error.code,
      message: error.message,
      request_id: requestId,
      ...(error.details ? { details: error.details } : {}),
      ...error.extra,
    },
  }
}

/** The one writer of error answers, on Node's own response: some errors come before Express does. */
export function writeError(
  res: ServerResponse,
  error: ApiError,
  requestId: string,
  headers: readonly string[] = [],
): void {
  writeJson(res, {
    status: error.status,
    body: JSON.stringify(toErrorResponse(error, requestId)),
    requestId,
    headers: [...Object.entries(error.headers).flat(), ...headers],
  })
}

/** Answers with the error; `res.locals.answerHeaders`, names and values in turn, go along. */
export function sendError(res: Response, error: ApiError): void {
  writeError(res, error, String(res.locals['requestId']), res.locals['answerHeaders'] as string[] | undefined)
}

/** Anything thrown as an ApiError: what is not one is unforeseen, and nothing of its inside leaves. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  return fromBodyParser(error) ?? new ApiError('internal_error', 'Something went wrong on our side.', { cause: error })
}

/** Every unknown path and method. */
export const handleNotFound: RequestHandler = (req, _res, next) => {
  next(notFound(`${req.method} ${req.path}`))
}

/** Turns whatever a handler threw into the contract's error body, and logs what somebody must look at. */
export function handleErrors(logger: Logger): ErrorRequestHandler {
  return (thrown, _req, res, _next) => {
    const error = toApiError(thrown)
    if (error.status >= 500) {
      const level = error.status === 500 ? 'error' : 'warn'
      logger[level](
        { request_id: res.locals['requestId'], error: describeError(error.cause ?? error), code: error.code },
        'request failed',
      )
    }
    if (res.headersSent) {
      if (!res.writableEnded) res.destroy()
      return
    }
    sendError(res, error)
  }
}

/** Express' and body-parser's own errors, by their `type`: their statuses (413, 415) are not in the contract. */
function fromBodyParser(error: unknown): ApiError | undefined {
  if (!(error instanceof Error)) return undefined
  const { type, status } = error as { type?: string; status?: number }
  switch (type) {
    case 'entity.too.large':
      return new ApiError('body_too_large', `The body is larger than ${bodyLimit(error)}.`)
    case 'encoding.unsupported':
    case 'charset.unsupported':
      return new ApiError('unsupported_media_type', 'Send the body as uncompressed UTF-8 JSON.')
    case 'entity.parse.failed':
      return new ApiError('invalid_json', 'The body is not valid JSON.')
    case 'request.size.invalid':
    case 'request.aborted':
      return new ApiError('invalid_request', 'The body ended before it was complete.')
    default:
      if (error instanceof URIError)
        return new ApiError('invalid_request', 'The path is not valid percent-encoded UTF-8.')
      return status !== undefined && status >= 400 && status < 500
        ? new ApiError('invalid_request', 'The request cannot be read.')
        : undefined
  }
}

function bodyLimit(error: Error): string {
  const { limit } = error as { limit?: number }
  return limit === undefined ? 'what is taken here' : `${Math.round(limit / 1024)} KiB`
}
