import { ApiError } from '@workflow-service/service-kit'
import express, { type RequestHandler } from 'express'

/** A context of 10,000 characters, each written as two \\u escapes, takes 120,000 bytes. */
export const BODY_MAX_BYTES = 256 * 1024

const JSON_TYPE = /^application\/json[\t ]*(;[\t ]*charset[\t ]*=[\t ]*"?utf-8"?[\t ]*)?;?[\t ]*$/i

const readBytes = express.raw({ type: () => true, limit: BODY_MAX_BYTES, inflate: false })
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Reads a JSON body into `req.body`; undefined when there is none. Anything else is a 400: another type, a charset beside
 * UTF-8, compression, more than 256 KiB, bytes that are no UTF-8, text that is no JSON.
 */
export const readJsonBody: RequestHandler = (req, res, next) => {
  readBytes(req, res, (error?: unknown) => {
    if (error) {
      next(error)
      return
    }
    try {
      req.body = parse(req.body as unknown, req.headers['content-type'])
      next()
    } catch (fault) {
      next(fault)
    }
  })
}

function parse(bytes: unknown, type: string | undefined): unknown {
  if (!Buffer.isBuffer(bytes) || bytes.length === 0) return undefined
  if (type === undefined || !JSON_TYPE.test(type)) {
    throw new ApiError(
      'unsupported_media_type',
      'Send the body as JSON, with the header "Content-Type: application/json".',
    )
  }
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch (cause) {
    throw new ApiError('invalid_json', 'The body is not UTF-8.', { cause })
  }
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
