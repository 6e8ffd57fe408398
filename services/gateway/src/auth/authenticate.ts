import { isDatabaseUnavailable, type Principal } from '@workflow-service/database'
import { ApiError, serviceUnavailable, withTimeout } from '@workflow-service/service-kit'
import { networkOf } from '@workflow-service/service-kit/rate-limit'
import type { Request, Response } from 'express'
import type { GatewayContext } from '../gateway-context.ts'
import { applyRateLimit } from '../rate-limit/rate-limits.ts'
import type { ApiKeyLookUp } from './api-key-cache.ts'

/** Together with a handler's 3 s, this keeps every answer within 5 s (contract README, "Errors"). */
const LOOK_UP_TIMEOUT_MS = 2_000

type AuthenticationContext = Pick<GatewayContext, 'apiKeys' | 'rateLimits'>

const BEARER = /^bearer +([^ ]+)$/i

/**
 * Finds the principal of the request's API key (contract README, "Authentication"). Synchronous for a cached key.
 * @throws ApiError 401 without a valid key, 429 after too many of those from one address, 503 without a database.
 */
export function authenticate(ctx: AuthenticationContext, req: Request, res: Response): Principal | Promise<Principal> {
  const key = readKey(req)
  const found = key === undefined ? null : ctx.apiKeys.find(key)
  if (found === null) return refuse(ctx, req, res, key)
  return 'run' in found ? lookUp(ctx, req, res, found) : found
}

/**
 * Looks up a key that is not cached. A look-up that may be a guess counts as a failed authentication from its
 * beginning, so that an address causes no more of them than its limit, also at once; it is given back unless the key
 * proves invalid.
 */
async function lookUp(
  ctx: AuthenticationContext,
  req: Request,
  res: Response,
  { isExpected, run }: ApiKeyLookUp,
): Promise<Principal> {
  const { rateLimits } = ctx
  const network = networkOf(req.ip ?? '')
  const counted = isExpected ? undefined : await rateLimits.consume('failed-authentications', network)
  if (counted && !counted.isAllowed) applyRateLimit(res, counted)
  let principal: Principal | null | undefined
  try {
    principal = await withTimeout(run(), LOOK_UP_TIMEOUT_MS, keysUnavailable)
  } catch (error) {
    throw isDatabaseUnavailable(error) ? keysUnavailable(error) : error
  } finally {
    if (counted && principal !== null) rateLimits.giveBack('failed-authentications', network, counted)
  }
  if (principal) return principal
  if (!counted) return refuse(ctx, req, res, readKey(req))
  applyRateLimit(res, counted)
  throw unauthorized(req, readKey(req))
}

/** Counts a failed authentication. Only these are counted by address, never requests with a valid key. */
async function refuse(
  { rateLimits }: AuthenticationContext,
  req: Request,
  res: Response,
  key: string | undefined,
): Promise<never> {
  applyRateLimit(res, await rateLimits.consume('failed-authentications', networkOf(req.ip ?? '')))
  throw unauthorized(req, key)
}

function unauthorized(req: Request, key: string | undefined): ApiError {
  return new ApiError('unauthorized', explainRefusal(req, key), { headers: { 'WWW-Authenticate': 'Bearer' } })
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
