// Makes and checks the value of the `X-Service-Token` header. Plain JavaScript without dependencies, so that what is
// tested here is what a customer installs; `index.d.ts` holds the documentation, and a test holds the two together.
import { createHmac, timingSafeEqual } from 'node:crypto'

/** @typedef {typeof import('./index.d.ts')} Api */

/** @type {Api['serviceTokenHeader']} */
export const serviceTokenHeader = 'X-Service-Token'

/** @type {Api['createServiceToken']} */
export function createServiceToken(secret, options = {}) {
  assertSecret(secret)
  const timestamp = String(Math.floor((options.now ?? Date.now)() / 1000))
  return Buffer.from(`${timestamp}.${sign(timestamp, secret)}`, 'latin1').toString('base64')
}

/** @type {Api['checkServiceToken']} */
export function checkServiceToken(headerValue, secret, options = {}) {
  const secrets = typeof secret === 'string' ? [secret] : secret
  if (secrets.length === 0) throw new TypeError('the list of signing secrets is empty')
  for (const candidate of secrets) assertSecret(candidate)

  const values = Array.isArray(headerValue) ? headerValue : [headerValue]
  if (values.length > 1) return { ok: false, reason: 'repeated' }
  const [value] = values
  if (value === undefined || value === null || value === '') return { ok: false, reason: 'missing' }

  const token = readToken(value)
  if (token === undefined) return { ok: false, reason: 'malformed' }

  const ageSeconds = Math.floor((options.now ?? Date.now)() / 1000) - Number(token.timestamp)
  const toleranceSeconds = options.toleranceSeconds ?? 300
  if (ageSeconds > toleranceSeconds) return { ok: false, reason: 'too_old' }
  if (ageSeconds < -toleranceSeconds) return { ok: false, reason: 'too_new' }

  const received = Buffer.from(token.signature, 'latin1')
  // Every secret is tried, whichever matches, so that the time taken does not tell which one it was.
  const matches = secrets.map((candidate) => timingSafeEqual(received, Buffer.from(sign(token.timestamp, candidate))))
  return matches.includes(true)
    ? { ok: true, timestamp: Number(token.timestamp) }
    : { ok: false, reason: 'wrong_signature' }
}

/** @type {Api['verifyServiceToken']} */
export function verifyServiceToken(secret, options = {}) {
  checkServiceToken(undefined, secret)
  return (request, response, next) => {
    // Node joins a repeated header with a comma, which makes it malformed.
    const check = checkServiceToken(request.headers[serviceTokenHeader.toLowerCase()], secret, options)
    if (check.ok) {
      next()
      return
    }
    const error = { code: 'invalid_service_token', reason: check.reason, message: messages[check.reason] }
    response.statusCode = 401
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify({ error }))
  }
}

/** @type {Record<import('./index.d.ts').ServiceTokenFault, string>} */
const messages = {
  missing: 'The request has no X-Service-Token header',
  repeated: 'The request has more than one X-Service-Token header',
  malformed: 'The X-Service-Token header is not the Base64 of <timestamp>.<signature>',
  too_old: 'The service token is too old',
  too_new: 'The service token is from the future: check the clock',
  wrong_signature: 'The signature does not match: check the signing secret',
}

/**
 * The timestamp stays the text that was received, since that text is what was signed.
 * @param {string} value
 * @returns {{ timestamp: string, signature: string } | undefined}
 */
function readToken(value) {
  if (typeof value !== 'string' || value.length > maxTokenLength) return undefined
  const bytes = Buffer.from(value, 'base64')
  // Buffer skips what is no Base64; only text that it writes back unchanged is Base64 as the standard has it.
  if (bytes.toString('base64') !== value) return undefined
  const text = bytes.toString('latin1')
  const dot = text.indexOf('.')
  const timestamp = text.slice(0, dot)
  const signature = text.slice(dot + 1)
  return dot !== -1 && /^\d{1,15}$/.test(timestamp) && /^[0-9a-f]{64}$/.test(signature)
    ? { timestamp, signature }
    : undefined
}

/** Far more than a timestamp of 15 digits needs; a longer value is no token, and is not worth decoding. */
const maxTokenLength = 128

/**
 * @param {string} timestamp
 * @param {string} secret
 */
function sign(timestamp, secret) {
  // The text itself, which Node takes as UTF-8: telling bytes from a key object costs it six times as much.
  return createHmac('sha256', secret).update(timestamp, 'latin1').digest('hex')
}

/** @param {unknown} secret */
function assertSecret(secret) {
  if (typeof secret !== 'string' || secret === '') {
    throw new TypeError('the signing secret must be a text that is not empty: is the setting that holds it missing?')
  }
}
