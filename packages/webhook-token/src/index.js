// Creates and checks the `X-Service-Token` and `X-Service-Signature` headers. Plain JavaScript with WebCrypto, without
// dependencies or a build step, so that customers install exactly the tested code, on any runtime. `index.d.ts` has the
// documentation; a test type-checks this file against it.

/**
 * @typedef {typeof import('./index.d.ts')} Api
 * @typedef {{ timestamp: string, signatures: Uint8Array<ArrayBuffer>[] }} Signed
 */

export { parseEvent, parseWebhook } from './parse-webhook.js'

const DEFAULT_TOLERANCE_SECONDS = 300

/** A token with a timestamp of 15 digits has 108 characters. A longer value is rejected before decoding. */
const MAX_TOKEN_LENGTH = 128

/** @type {Api['SERVICE_TOKEN_HEADER']} */
export const SERVICE_TOKEN_HEADER = 'X-Service-Token'

/** @type {Api['SERVICE_SIGNATURE_HEADER']} */
export const SERVICE_SIGNATURE_HEADER = 'X-Service-Signature'

/** @type {Api['SERVICE_TIMESTAMP_HEADER']} */
export const SERVICE_TIMESTAMP_HEADER = 'X-Service-Timestamp'

/** @type {Api['DELIVERY_ID_HEADER']} */
export const DELIVERY_ID_HEADER = 'X-Delivery-Id'

/** @type {Api['DELIVERY_ATTEMPT_HEADER']} */
export const DELIVERY_ATTEMPT_HEADER = 'X-Delivery-Attempt'

/** @type {Api['createServiceToken']} */
export async function createServiceToken(secret, options = {}) {
  const key = await importKey(readSecrets(secret)[0])
  const timestamp = String(Math.floor((options.now ?? Date.now)() / 1000))
  const signature = Array.from(await sign(key, timestamp), (byte) => byte.toString(16).padStart(2, '0'))
  return btoa(`${timestamp}.${signature.join('')}`)
}

/** @type {Api['checkServiceToken']} */
export async function checkServiceToken(headerValue, secret, options = {}) {
  const secrets = readSecrets(secret)
  const values = Array.isArray(headerValue) ? headerValue : [headerValue]
  if (values.length > 1) return { ok: false, reason: 'repeated' }
  const [value] = values
  if (value === undefined || value === null || value === '') return { ok: false, reason: 'missing' }

  const token = readToken(value)
  if (token === undefined) return { ok: false, reason: 'malformed' }

  return await checkSigned({ ...token, content: toContent(token.timestamp) }, secrets, options)
}

/** @type {Api['createServiceSignature']} */
export async function createServiceSignature(secret, { deliveryId, timestamp, body }) {
  const key = await importKey(readSecrets(secret)[0])
  const signature = await sign(key, `${deliveryId}.${timestamp}.`, body)
  return `v1,${btoa(String.fromCharCode(...signature))}`
}

/** @type {Api['createServiceHeaders']} */
export async function createServiceHeaders(secret, { deliveryId, attempt = 1, body }, options = {}) {
  const nowMs = (options.now ?? Date.now)()
  const timestamp = String(Math.floor(nowMs / 1000))
  const headers = {
    [DELIVERY_ID_HEADER]: deliveryId,
    [DELIVERY_ATTEMPT_HEADER]: String(attempt),
    [SERVICE_TIMESTAMP_HEADER]: timestamp,
  }
  if (secret === null) return headers
  return {
    ...headers,
    [SERVICE_TOKEN_HEADER]: await createServiceToken(secret, { now: () => nowMs }),
    [SERVICE_SIGNATURE_HEADER]: await createServiceSignature(secret, { deliveryId, timestamp, body }),
  }
}

/** A delivery id, which is a UUID, and a timestamp of up to 15 digits. */
const ID = /^[0-9A-Za-z-]{1,64}$/
const TIMESTAMP = /^\d{1,15}$/
/** `v1,` and the Base64 of 32 bytes. A sender may give several, with spaces between them. */
const SIGNATURES = /^(?:v\d{1,2},[0-9A-Za-z+/]{4,256}={0,2} ?){1,4}$/

/** @type {Api['checkServiceSignature']} */
export async function checkServiceSignature(headers, body, secret, options = {}) {
  const secrets = readSecrets(secret)
  const values = [DELIVERY_ID_HEADER, SERVICE_TIMESTAMP_HEADER, SERVICE_SIGNATURE_HEADER].map((name) =>
    readHeader(headers, name),
  )
  if (values.some(({ length }) => length > 1)) return { ok: false, reason: 'repeated' }
  const [deliveryId, timestamp, signatures] = values.map(([value]) => value)
  if (!deliveryId || !timestamp || !signatures) return { ok: false, reason: 'missing' }
  if (!ID.test(deliveryId) || !TIMESTAMP.test(timestamp) || !SIGNATURES.test(signatures)) {
    return { ok: false, reason: 'malformed' }
  }
  // One that was parsed, or the `{}` that Express 4 has for a body that it did not read.
  const isParsed = typeof body !== 'string' && !ArrayBuffer.isView(body) && !(body instanceof ArrayBuffer)
  if (isParsed) return { ok: false, reason: 'wrong_signature' }
  const received = signatures
    .split(' ')
    .filter((each) => each.startsWith('v1,'))
    .flatMap((each) => decodeBase64(each.slice(3)) ?? [])
  const content = toContent(`${deliveryId}.${timestamp}.`, body)
  const check = await checkSigned({ timestamp, signatures: received, content }, secrets, options)
  return check.ok ? { ...check, deliveryId } : check
}

/** @type {Api['verifyServiceToken']} */
export function verifyServiceToken(secret, options = {}) {
  readSecrets(secret)
  readTolerance(options)
  return async (request, response, next) => {
    // Node joins repeated headers with a comma, which makes the value malformed.
    const check = await checkServiceToken(request.headers[SERVICE_TOKEN_HEADER.toLowerCase()], secret, options)
    if (check.ok) {
      next()
      return
    }
    const error = { code: 'invalid_service_token', reason: check.reason, message: MESSAGES[check.reason] }
    response.statusCode = 401
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify({ error }))
  }
}

/** @type {Record<import('./index.d.ts').ServiceTokenRejection, string>} */
const MESSAGES = {
  missing: 'The request has no X-Service-Token header',
  repeated: 'The request has more than one X-Service-Token header',
  malformed: 'The X-Service-Token header is not the Base64 of <timestamp>.<signature>',
  too_old: 'The service token is too old',
  too_new: 'The service token is from the future: check the clock',
  wrong_signature: 'The signature does not match: check the signing secret',
}

/** @type {Api['createDeliveryMemory']} */
export function createDeliveryMemory({ maxIds = 10_000 } = {}) {
  /** @type {Set<string>} */
  const seen = new Set()
  return {
    alreadySeen(id) {
      if (seen.has(id)) return true
      seen.add(id)
      // A set lists its oldest entry first.
      const [oldest = id] = seen
      if (seen.size > maxIds) seen.delete(oldest)
      return false
    },
    forget(id) {
      seen.delete(id)
    },
  }
}

/**
 * @param {import('./index.d.ts').RequestHeaders} headers
 * @param {string} name
 * @returns {readonly string[]}
 */
function readHeader(headers, name) {
  const value = typeof headers.get === 'function' ? headers.get(name) : headers[name.toLowerCase()]
  if (value === undefined || value === null) return []
  return typeof value === 'string' ? [value] : value
}

/**
 * @param {string | readonly string[] | null | undefined} secret
 * @returns {readonly [string, ...string[]]}
 */
function readSecrets(secret) {
  if (!globalThis.crypto?.subtle) {
    throw new TypeError(
      "this package needs WebCrypto: Node 20 or newer, Bun, Deno, a worker, or a page with https. On Node 18, run first: globalThis.crypto = require('node:crypto').webcrypto",
    )
  }
  const secrets = Array.isArray(secret) ? secret : [secret]
  if (secrets.length === 0) throw new TypeError('the list of signing secrets is empty: is its setting missing?')
  for (const candidate of secrets) {
    if (typeof candidate === 'string' && candidate !== '') continue
    const found = candidate === '' ? 'empty' : candidate === undefined ? 'undefined' : `of the type ${typeof candidate}`
    throw new TypeError(`the signing secret must be a non-empty string, and is ${found}: is its setting missing?`)
  }
  return /** @type {[string]} */ (secrets)
}

/** @param {import('./index.d.ts').ServiceTokenOptions} options */
function readTolerance({ toleranceSeconds }) {
  const seconds = toleranceSeconds ?? DEFAULT_TOLERANCE_SECONDS
  if (!(seconds >= 0)) throw new TypeError('toleranceSeconds must be a number from 0: is its setting missing?')
  return seconds
}

/**
 * Checks the time, and whether one of the signatures is of the content with one of the secrets. Compares with every
 * secret, so that the time taken does not disclose which one matched. WebCrypto compares in constant time.
 * @param {Signed & { content: Uint8Array<ArrayBuffer> }} signed
 * @param {readonly string[]} secrets
 * @param {import('./index.d.ts').ServiceTokenOptions} options
 * @returns {Promise<import('./index.d.ts').ServiceTokenCheck>}
 */
async function checkSigned({ timestamp, signatures, content }, secrets, options) {
  const ageSeconds = Math.floor((options.now ?? Date.now)() / 1000) - Number(timestamp)
  const toleranceSeconds = readTolerance(options)
  // Negated, so that a clock that gives no number accepts nothing.
  if (!(ageSeconds <= toleranceSeconds)) return { ok: false, reason: 'too_old' }
  if (!(ageSeconds >= -toleranceSeconds)) return { ok: false, reason: 'too_new' }
  const keys = await Promise.all(secrets.map(importKey))
  const matches = keys.flatMap((key) => signatures.map((each) => crypto.subtle.verify('HMAC', key, each, content)))
  const isSigned = (await Promise.all(matches)).includes(true)
  return isSigned ? { ok: true, timestamp: Number(timestamp) } : { ok: false, reason: 'wrong_signature' }
}

/**
 * @param {CryptoKey} key
 * @param {string} text
 * @param {string | Uint8Array} [body]
 */
async function sign(key, text, body) {
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, toContent(text, body)))
}

/**
 * @param {string} text
 * @param {string | Uint8Array | ArrayBuffer} [body]
 */
function toContent(text, body = '') {
  const start = new TextEncoder().encode(text)
  const bytes = body instanceof ArrayBuffer ? new Uint8Array(body) : body
  const end = typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes
  const content = new Uint8Array(start.length + end.length)
  content.set(start)
  content.set(end, start.length)
  return content
}

/** @param {string} secret */
async function importKey(secret) {
  const hash = { name: 'HMAC', hash: 'SHA-256' }
  return await crypto.subtle.importKey('raw', new TextEncoder().encode(secret), hash, false, ['sign', 'verify'])
}

/**
 * Decodes a token. The timestamp stays text, because the signature covers the text as received.
 * @param {string} value
 * @returns {Signed | undefined}
 */
function readToken(value) {
  if (typeof value !== 'string' || value.length > MAX_TOKEN_LENGTH) return undefined
  const [, timestamp, hex] =
    /^(\d{1,15})\.([0-9a-f]{64})$/.exec(String.fromCharCode(...(decodeBase64(value) ?? []))) ?? []
  if (timestamp === undefined || hex === undefined) return undefined
  return { timestamp, signatures: [Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))] }
}

/**
 * Decodes standard Base64 with padding. `atob` takes white space and missing padding: the re-encoded text shows them.
 * @param {string} text
 * @returns {Uint8Array<ArrayBuffer> | undefined}
 */
function decodeBase64(text) {
  try {
    const bytes = atob(text)
    return btoa(bytes) === text ? Uint8Array.from(bytes, (byte) => byte.charCodeAt(0)) : undefined
  } catch {
    return undefined
  }
}
