// Creates and checks the `X-Service-Token` and `X-Service-Signature` headers. Plain JavaScript without dependencies or
// a build step, so that customers install exactly the tested code. `index.d.ts` has the documentation; a test
// type-checks this file against it.
import { createHmac, timingSafeEqual } from 'node:crypto'

/** @typedef {typeof import('./index.d.ts')} Api */

export { parseWebhook } from './parse-webhook.js'

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
export function createServiceToken(secret, options = {}) {
  assertSecret(secret)
  const timestamp = String(Math.floor((options.now ?? Date.now)() / 1000))
  return Buffer.from(`${timestamp}.${sign(timestamp, secret)}`, 'latin1').toString('base64')
}

/** @type {Api['checkServiceToken']} */
export function checkServiceToken(headerValue, secret, options = {}) {
  const secrets = readSecrets(secret)
  const values = Array.isArray(headerValue) ? headerValue : [headerValue]
  if (values.length > 1) return { ok: false, reason: 'repeated' }
  const [value] = values
  if (value === undefined || value === null || value === '') return { ok: false, reason: 'missing' }

  const token = readToken(value)
  if (token === undefined) return { ok: false, reason: 'malformed' }

  const untimely = checkTime(token.timestamp, options)
  if (untimely) return { ok: false, reason: untimely }

  const received = Buffer.from(token.signature, 'latin1')
  // Compares with every secret, so that the time taken does not disclose which one matched.
  const matches = secrets.map((candidate) => timingSafeEqual(received, Buffer.from(sign(token.timestamp, candidate))))
  return matches.includes(true)
    ? { ok: true, timestamp: Number(token.timestamp) }
    : { ok: false, reason: 'wrong_signature' }
}

/** @type {Api['createServiceSignature']} */
export function createServiceSignature(secret, { deliveryId, timestamp, body }) {
  assertSecret(secret)
  return `v1,${signBody(secret, `${deliveryId}.${timestamp}.`, body)}`
}

/** @type {Api['createServiceHeaders']} */
export function createServiceHeaders(secret, { deliveryId, attempt = 1, body }, options = {}) {
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
    [SERVICE_TOKEN_HEADER]: createServiceToken(secret, { now: () => nowMs }),
    [SERVICE_SIGNATURE_HEADER]: createServiceSignature(secret, { deliveryId, timestamp, body }),
  }
}

/** A delivery id, which is a UUID, and a timestamp of up to 15 digits. */
const ID = /^[0-9A-Za-z-]{1,64}$/
const TIMESTAMP = /^\d{1,15}$/
/** `v1,` and the Base64 of 32 bytes. A sender may give several, with spaces between them. */
const SIGNATURES = /^(?:v\d{1,2},[0-9A-Za-z+/]{4,256}={0,2} ?){1,4}$/

/** @type {Api['checkServiceSignature']} */
export function checkServiceSignature(headers, body, secret, options = {}) {
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
  const untimely = checkTime(timestamp, options)
  if (untimely) return { ok: false, reason: untimely }
  const received = signatures.split(' ').map((each) => Buffer.from(each, 'latin1'))
  const matches = secrets.flatMap((candidate) => {
    const expected = Buffer.from(createServiceSignature(candidate, { deliveryId, timestamp, body }), 'latin1')
    return received.map((each) => each.length === expected.length && timingSafeEqual(each, expected))
  })
  return matches.includes(true)
    ? { ok: true, timestamp: Number(timestamp), deliveryId }
    : { ok: false, reason: 'wrong_signature' }
}

/** @type {Api['verifyServiceToken']} */
export function verifyServiceToken(secret, options = {}) {
  checkServiceToken(undefined, secret)
  return (request, response, next) => {
    // Node joins repeated headers with a comma, which makes the value malformed.
    const check = checkServiceToken(request.headers[SERVICE_TOKEN_HEADER.toLowerCase()], secret, options)
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
 * @param {string | readonly string[] | undefined} secret
 * @returns {readonly string[]}
 */
function readSecrets(secret) {
  const secrets = Array.isArray(secret) ? secret : [secret]
  if (secrets.length === 0) throw new TypeError('the list of signing secrets is empty: is its setting missing?')
  for (const candidate of secrets) assertSecret(candidate)
  return secrets
}

/**
 * @param {string} timestamp
 * @param {import('./index.d.ts').ServiceTokenOptions} options
 * @returns {'too_old' | 'too_new' | undefined}
 */
function checkTime(timestamp, options) {
  const ageSeconds = Math.floor((options.now ?? Date.now)() / 1000) - Number(timestamp)
  const toleranceSeconds = options.toleranceSeconds ?? DEFAULT_TOLERANCE_SECONDS
  if (ageSeconds > toleranceSeconds) return 'too_old'
  return ageSeconds < -toleranceSeconds ? 'too_new' : undefined
}

/**
 * @param {string} secret
 * @param {string} start
 * @param {string | Uint8Array} body
 */
function signBody(secret, start, body) {
  return createHmac('sha256', secret).update(start, 'latin1').update(body).digest('base64')
}

/**
 * Decodes a token. The timestamp stays text, because the signature covers the text as received.
 * @param {string} value
 * @returns {{ timestamp: string, signature: string } | undefined}
 */
function readToken(value) {
  if (typeof value !== 'string' || value.length > MAX_TOKEN_LENGTH) return undefined
  const bytes = Buffer.from(value, 'base64')
  // Buffer ignores invalid characters; comparing with the re-encoded text accepts standard Base64 only.
  if (bytes.toString('base64') !== value) return undefined
  const text = bytes.toString('latin1')
  const dot = text.indexOf('.')
  const timestamp = text.slice(0, dot)
  const signature = text.slice(dot + 1)
  return dot !== -1 && /^\d{1,15}$/.test(timestamp) && /^[0-9a-f]{64}$/.test(signature)
    ? { timestamp, signature }
    : undefined
}

/**
 * @param {string} timestamp
 * @param {string} secret
 */
function sign(timestamp, secret) {
  // A string key, which Node encodes as UTF-8: passing a Buffer or KeyObject takes six times as long.
  return createHmac('sha256', secret).update(timestamp, 'latin1').digest('hex')
}

/**
 * @param {unknown} secret
 * @returns {asserts secret is string}
 */
function assertSecret(secret) {
  if (typeof secret !== 'string' || secret === '') {
    const found = secret === '' ? 'empty' : secret === undefined ? 'undefined' : `of the type ${typeof secret}`
    throw new TypeError(`the signing secret must be a non-empty string, and is ${found}: is its setting missing?`)
  }
}
