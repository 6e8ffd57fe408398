import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { FieldCode } from '@workflow-service/contract'
import { ApiError, bodyTooLarge, invalidFields } from './errors.ts'

/** A JSON body; both parts are undefined when the request has none. */
export interface JsonBody {
  readonly value: unknown
  /** The text as it was sent, without a byte-order mark. */
  readonly text: string | undefined
}

export const NO_BODY: JsonBody = { value: undefined, text: undefined }

export interface BodyLimits {
  readonly maxBytes: number
  /** Members and list items in all. Default: no limit. */
  readonly maxMembers?: number
  /** Levels of objects and lists; the body itself is level 1. Default: no limit. */
  readonly maxDepth?: number
  /** A body of at most so many bytes is not checked for members and depth. Default: 0. */
  readonly uncheckedBytes?: number
}

const CONTENT_TYPE_MAX_LENGTH = 200
/** `trim` would also remove a no-break space, which Node.js lets through in a header. */
const NOT_IN_CONTENT_TYPE = /[^\t -~]/
/** A smaller body holds up other requests too briefly to wait for its turn. */
const LARGE_BODY_BYTES = 16 * 1024
/** Ignores a leading byte-order mark, as RFC 8259, section 8.1 allows. */
const UTF_8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/**
 * Reads a request's JSON body (contract README, "Public API"). The last of several members with the same name is used.
 * Never settles if the connection is closed before the body has arrived: nothing reads an error then.
 * @throws ApiError 400 for another content type, a charset other than UTF-8, compression, bytes that are not UTF-8, and
 * text that is not JSON; 400 `body_too_large` for more than `maxBytes`, without waiting for the rest of the body.
 * @throws ApiError 422 `too_many_fields` or `too_deep` beyond `maxMembers` or `maxDepth`, before the body is parsed:
 *   counting the first thousand of very many members costs far less than parsing all.
 * @param waitForTurn Awaited before a large body is counted and decoded, and again before it is parsed: both block the
 *   process.
 */
export async function readJsonBody(
  req: IncomingMessage,
  limits: BodyLimits,
  waitForTurn: () => Promise<void> = async () => {},
): Promise<JsonBody> {
  const { 'content-length': length, 'transfer-encoding': transferEncoding } = req.headers
  if (transferEncoding === undefined && (length === undefined || length === '0')) return NO_BODY
  if (Number(length) > limits.maxBytes) throw bodyTooLarge(limits.maxBytes)
  const bytes = await readBytes(req, limits.maxBytes)
  if (bytes.length === 0) return NO_BODY
  assertJsonInUtf8(req.headers)
  if (bytes.length > LARGE_BODY_BYTES) await waitForTurn()
  if (bytes.length > (limits.uncheckedBytes ?? 0)) assertSimple(bytes, limits)
  const text = decode(bytes)
  if (bytes.length > LARGE_BODY_BYTES) await waitForTurn()
  return { value: parse(text), text }
}

/** Leaves the rest of a larger body to the server: it drops a small one, and closes the connection of a large one. */
function readBytes(req: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  let left = maxBytes
  const keep = (chunk: Buffer): void => {
    left -= chunk.length
    chunks.push(chunk)
    if (left >= 0) return
    req.off('data', keep).pause()
    reject(bodyTooLarge(maxBytes))
  }
  req.on('data', keep).once('end', () => resolve(Buffer.concat(chunks)))
  return promise
}

function assertJsonInUtf8(headers: IncomingHttpHeaders): void {
  const { 'content-type': type, 'content-encoding': encoding = 'identity' } = headers
  // Of several transfer codings Node undoes `chunked` alone.
  const { 'transfer-encoding': transferEncoding = 'chunked' } = headers
  const isEncoded = encoding.toLowerCase() !== 'identity'
  if (isEncoded || transferEncoding.toLowerCase() !== 'chunked') {
    const without = isEncoded ? 'Content-Encoding' : 'a Transfer-Encoding other than "chunked"'
    throw new ApiError('unsupported_media_type', `Send the body uncompressed, without ${without}.`)
  }
  if (type === undefined || !isJsonInUtf8(type)) {
    const message = 'Send the body as JSON, with the header "Content-Type: application/json".'
    throw new ApiError('unsupported_media_type', message)
  }
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c]
const [OPENING_BRACKET, OPENING_BRACE, CLOSING_BRACKET, CLOSING_BRACE] = [0x5b, 0x7b, 0x5d, 0x7d]

/**
 * Counts commas, which separate members and list items, and open brackets, both outside strings. Reads no further than
 * the limits. Returns the number of members and items.
 * @throws ApiError 422 `too_many_fields`, `too_deep`
 */
export function assertSimple(
  bytes: Uint8Array,
  { maxMembers = Infinity, maxDepth = Infinity }: Omit<BodyLimits, 'maxBytes'>,
): number {
  let [members, depth] = [1, 0]
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index]
    if (byte === QUOTE) index = endOfString(bytes, index + 1)
    else if (byte === COMMA) members += 1
    else if (byte === OPENING_BRACKET || byte === OPENING_BRACE) depth += 1
    else if (byte === CLOSING_BRACKET || byte === CLOSING_BRACE) depth -= 1
    if (members > maxMembers) {
      const most = maxMembers.toLocaleString('en')
      throw bodyError('too_many_fields', `must have at most ${most} fields and list items in all`)
    }
    if (depth > maxDepth) {
      throw bodyError('too_deep', `must not nest objects and lists more than ${maxDepth} levels deep`)
    }
  }
  return members
}

/** Returns the index of the quote that ends the string that begins at `start`; beyond the last byte without one. */
function endOfString(bytes: Uint8Array, start: number): number {
  let index = start
  while (index < bytes.length && bytes[index] !== QUOTE) index += bytes[index] === BACKSLASH ? 2 : 1
  return index
}

function bodyError(code: FieldCode, message: string): ApiError {
  return invalidFields([{ field: 'body', code, message }])
}

function decode(bytes: Uint8Array): string {
  try {
    return UTF_8.decode(bytes)
  } catch (cause) {
    throw new ApiError('invalid_json', 'The body is not UTF-8.', { cause })
  }
}

/**
 * Whether a Content-Type is `application/json`, with at most the parameter `charset=utf-8`. The parts are split and
 * trimmed: a regular expression with several optional spaces would take quadratic time.
 */
export function isJsonInUtf8(contentType: string): boolean {
  if (contentType.length > CONTENT_TYPE_MAX_LENGTH || NOT_IN_CONTENT_TYPE.test(contentType)) return false
  const [type, ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase())
  if (type !== 'application/json') return false
  const [parameter, ...others] = parameters.filter((text) => text !== '')
  return others.length === 0 && (parameter === undefined || isCharsetUtf8(parameter))
}

function isCharsetUtf8(parameter: string): boolean {
  const [name, value, ...others] = parameter.split('=').map((part) => part.trim())
  return others.length === 0 && name === 'charset' && (value === 'utf-8' || value === '"utf-8"')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new ApiError('invalid_json', `The body is not valid JSON: ${describeSyntaxError(cause)}.`, { cause })
  }
}

/**
 * Describes a JSON syntax error without V8's excerpt of the text, which may contain secrets. V8 gives a position except
 * for an early end and where it expects a value.
 */
function describeSyntaxError(error: unknown): string {
  const message = error instanceof Error ? error.message : ''
  const [position] = / at position \d+( \(line \d+ column \d+\))?/.exec(message) ?? []
  if (position) return `unexpected text${position}`
  return message.startsWith('Unexpected end of ')
    ? 'it ends too early'
    : 'a value is missing, or is a text without double quotes'
}
