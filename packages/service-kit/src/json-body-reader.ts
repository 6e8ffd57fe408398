import type { IncomingHttpHeaders } from 'node:http'
import type { RequestHandler } from 'express'
import { getRawBody } from 'raw-body'
import { ApiError } from './api-error.ts'

const JSON_TYPE = /^application\/json[\t ]*(;[\t ]*charset[\t ]*=[\t ]*"?utf-8"?[\t ]*)?;?[\t ]*$/i

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads a JSON body into `req.body`, and its text into `res.locals.bodyText`; both undefined when there is none. Anything
 * else is a 400: another type, a charset beside UTF-8, compression, more than `maxBytes`, bytes that are no UTF-8, text
 * that is no JSON. What is too large is answered at once; what still comes of it is thrown away.
 */
export function jsonBodyReader({ maxBytes }: { maxBytes: number }): RequestHandler {
  return (req, res, next) => {
    const { 'content-length': length, 'transfer-encoding': transferEncoding } = req.headers
    if (transferEncoding === undefined && (length === undefined || length === '0')) {
      next()
      return
    }
    getRawBody(req, { length: length ?? null, limit: maxBytes }, (error, bytes) => {
      if (error) {
        req.resume()
        next(error)
        return
      }
      try {
        const text = decode(bytes, req.headers)
        res.locals['bodyText'] = text
        req.body = text === undefined ? undefined : parse(text)
        next()
      } catch (fault) {
        next(fault)
      }
    })
  }
}

function decode(
  bytes: Uint8Array,
  { 'content-type': type, 'content-encoding': encoding }: IncomingHttpHeaders,
): string | undefined {
  if (bytes.length === 0) return undefined
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new ApiError('unsupported_media_type', 'Send the body uncompressed, without Content-Encoding.')
  }
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
