import { isDatabaseUnavailable, type Principal } from '@workflow-service/database'
import { ApiError, serviceUnavailable, withTimeout } from '@workflow-service/service-kit'
import type { Request, Response } from 'express'
import ipaddr from 'ipaddr.js'
import type { AppContext } from '../app-context.ts'
import { applyRateLimit } from '../rate-limit/apply-rate-limit.ts'

/** Together with a handler's 3 s, this keeps every answer within 5 s (contract README, "Errors"). */
const LOOK_UP_TIMEOUT_MS = 2_000

const BEARER = /^bearer +([^ ]+)$/i

/**
 * Finds the principal of the request's API key (contract README, "Authentication"). Synchronous for a cached key.
 * @throws ApiError 401 without a valid key, 429 after too many of those from one address, 503 without a database.
 */
export function authenticate(
  { apiKeys, rateLimits }: Pick<AppContext, 'apiKeys' | 'rateLimits'>,
  req: Request,
  res: Response,
): Principal | Promise<Principal> {
  const key = readKey(req)
  const found = key === undefined ? null : apiKeys.findPrincipal(key)
  const refuse = async (): Promise<never> => {
    // Only failed authentications are counted by address, so a valid key is never refused for its neighbours.
    applyRateLimit(res, await rateLimits.consume('failed-authentications', toNetwork(req.ip ?? '')))
    throw new ApiError('unauthorized', explainRefusal(req, key), { headers: { 'WWW-Authenticate': 'Bearer' } })
  }
  if (found === null) return refuse()
  if (!(found instanceof Promise)) return found
  return withTimeout(found, LOOK_UP_TIMEOUT_MS, keysUnavailable).then(
    (principal) => principal ?? refuse(),
    (error: unknown) => {
      throw isDatabaseUnavailable(error) ? keysUnavailable(error) : error
    },
  )
}

function keysUnavailable(cause?: unknown): ApiError {
  return serviceUnavailable('The service cannot check keys at the moment; try again.', cause)
}

/** Returns the key of the only Authorization header; undefined when there is none, several, or another scheme. */
function readKey(req: Request): string | undefined {
  const { authorization } = req.headers
  if (authorization === undefined) return undefined
  // Node keeps the first of several Authorization headers and drops the others without an error.
  const names = req.rawHeaders.filter(
    (text, index) => index % 2 === 0 && text.length === 13 && /^authorization$/i.test(text),
  )
  return names.length === 1 ? BEARER.exec(authorization)?.[1] : undefined
}

function explainRefusal(req: Request, key: string | undefined): string {
  if (key !== undefined) return 'The API key is not valid: it is mistyped, unknown, revoked or expired.'
  return req.headers.authorization === undefined
    ? 'Send your API key in the header "Authorization: Bearer wfk_…".'
    : 'The Authorization header must be sent once, as "Authorization: Bearer wfk_…".'
}

/** Returns the IPv4 address or the IPv6 /64, the smallest network that a subscriber gets. */
function toNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}
