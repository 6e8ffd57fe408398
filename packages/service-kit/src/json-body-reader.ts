import express, { type RequestHandler } from 'express'
import { ApiError } from './api-error.ts'

const JSON_TYPE = /^application\/json[\t ]*(;[\t ]*charset[\t ]*=[\t ]*"?utf-8"?[\t ]*)?;?[\t ]*$/i

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads a JSON body into `req.body`, and its text into `res.locals.bodyText`; both undefined when there is none. Anything
 * else is a 400: another type, a charset beside UTF-8, compression, more than `maxBytes`, bytes that are no UTF-8, text
 * that is no JSON.
 */
export function jsonBodyReader(options: { maxBytes: number }): RequestHandler {
  const readBytes = express.raw({ type: () => true, limit: options.maxBytes, inflate: false })
  return (req, res, next) => {
    readBytes(req, res, (error?: unknown) => {
      if (error) {
        next(error)
        return
      }
      try {
        const text = decode(req.body as unknown, req.headers['content-type'])
        res.locals['bodyText'] = text
        req.body = text === undefined ? undefined : parse(text)
        next()
      } catch (fault) {
        next(fault)
      }
    })
  }
}

function decode(bytes: unknown, type: string | undefined): string | undefined {
  if (!Buffer.isBuffer(bytes) || bytes.length === 0) return undefined
  if (type === undefined || !JSON_TYPE.test(type)) {
    throw new ApiError(
      'unsupported_media_type',
      'Send the body as JSON, with the header "Content-Type: application/json".',
    )
  }
  try {
    return utf8.decode(bytes)
  } catch (cause) {
    throw new ApiError('invalid_json', 'The body is not UTF-8.', { cause })
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ApiError('invalid_json', `The body is not valid JSON: ${describe(cause)}.`, { cause })
  }
}

/** Where the JSON breaks, without the text around it: it may be long, and it is the caller's. */
function describe(error: unknown): string {
  const [place] = / at position \d+( \(line \d+ column \d+\))?/.exec(error instanceof Error ? error.message : '') ?? []
  return place ? `it breaks${place}` : 'it ends too early or is malformed'
}
