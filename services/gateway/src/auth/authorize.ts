import type { Operation } from '@workflow-service/contract'
import { isDatabaseUnavailable, type Principal } from '@workflow-service/database'
import { ApiError, mapMaybePromise, serviceUnavailable, withTimeout } from '@workflow-service/service-kit'
import { type LimitState, networkOf } from '@workflow-service/service-kit/rate-limit'
import type { Request, Response } from 'express'
import type { GatewayContext } from '../gateway-context.ts'
import type { ApiKeyLookUp } from './api-key-cache.ts'

declare global {
  namespace Express {
    interface Locals {
      /** The key that the request was authenticated with. */
      apiKey?: Principal
    }
  }
}

type AuthContext = Pick<GatewayContext, 'apiKeys' | 'apiKeyUsage' | 'rateLimits'>

/**
 * Creates the authorization step of every operation, in the order of the contract README, "Errors": a valid key (401),
 * an organization that is not suspended and the key's scope (403), the rate limit (429). Synchronous for a cached key
 * without a shared rate limit.
 */
export function authorize(ctx: AuthContext) {
  return (req: Request, res: Response, operation: Operation | undefined): Principal | Promise<Principal> =>
    mapMaybePromise(authenticate(ctx, req, res), (principal) => {
      res.locals.apiKey = principal
      checkPermission(res, principal, operation)
      ctx.apiKeyUsage.record(principal.apiKeyId)
      return mapMaybePromise(ctx.rateLimits.consume('requests', principal.apiKeyId), (state) => {
        ctx.rateLimits.apply(res, 'requests', state)
        return principal
      })
    })
}

/**
 * Creates the authorization of a request whose body came later, which counts nothing again: a key that was revoked
 * meanwhile is refused as in a new request (401), and so is what it may no longer do (403).
 */
export function authorizeAgain(ctx: AuthContext) {
  return (req: Request, res: Response, operation: Operation): Principal | Promise<Principal> =>
    mapMaybePromise(authenticate(ctx, req, res), (principal) => {
      checkPermission(res, principal, operation)
      return principal
    })
}

/** @throws ApiError 403. */
function checkPermission(res: Response, { isSuspended, scopes }: Principal, operation: Operation | undefined): void {
  if (!isSuspended && (!operation || scopes.includes(operation.scope))) return
  // Counting the request, before its body came, has set the headers of the rate limit: a refusal has none of them.
  delete res.locals.responseHeaders
  if (isSuspended || !operation)
    throw new ApiError(
      'organization_suspended',
      'The organization of this key is suspended. Ask the operator of the service to resume it.',
    )
  throw new ApiError(
    'insufficient_scope',
    `This needs a key with the scope ${operation.scope}; the key has ${scopes.join(', ')}.`,
  )
}

/** Together with a handler's 3 s, this keeps every response within 5 s (contract README, "Errors"). */
const LOOK_UP_TIMEOUT_MS = 2_000
const BEARER = /^bearer +([^ ]+)$/i
const FAILED_POLICY = 'failed-authentications'

/**
 * Finds the principal of the request's API key (contract README, "Authentication"). Synchronous for a cached key.
 * @throws ApiError 401 without a valid key, 429 after too many of those from one address, 503 without a database.
 */
function authenticate(ctx: AuthContext, req: Request, res: Response): Principal | Promise<Principal> {
  const key = readKey(req)
  const found = key === undefined ? null : ctx.apiKeys.find(key)
  if (found === null) return refuse(ctx, req, res)
  return 'run' in found ? lookUp(ctx, req, res, found) : found
}

/**
 * Looks up a key that is not cached. A look-up that may be a guess counts as a failed authentication from its
 * beginning, so that an address causes no more of them than its limit, also at once; it is given back unless the key
 * proves invalid.
 */
async function lookUp(
  ctx: AuthContext,
  req: Request,
  res: Response,
  { isExpected, run }: ApiKeyLookUp,
): Promise<Principal> {
  const { rateLimits } = ctx
  const network = networkOf(req.ip ?? '')
  const counted = isExpected ? undefined : await rateLimits.consume(FAILED_POLICY, network)
  if (counted?.isAllowed === false) rateLimits.apply(res, FAILED_POLICY, counted)
  let principal: Principal | null | undefined
  try {
    principal = await withTimeout(run(), LOOK_UP_TIMEOUT_MS, keysUnavailable)
  } catch (error) {
    throw isDatabaseUnavailable(error) ? keysUnavailable(error) : error
  } finally {
    if (counted && principal !== null) rateLimits.giveBack(FAILED_POLICY, network, counted)
  }
  return principal ?? (await refuse(ctx, req, res, counted))
}

/** Refuses a request, and counts it by its address unless it is `counted`. Requests with a valid key never are. */
async function refuse({ rateLimits }: AuthContext, req: Request, res: Response, counted?: LimitState): Promise<never> {
  // The headers of the request's rate limit; a refusal has those of the failed authentications.
  delete res.locals.responseHeaders
  rateLimits.apply(res, FAILED_POLICY, counted ?? (await rateLimits.consume(FAILED_POLICY, networkOf(req.ip ?? ''))))
  throw new ApiError('unauthorized', explainRefusal(req), { headers: { 'WWW-Authenticate': 'Bearer' } })
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

function explainRefusal(req: Request): string {
  if (readKey(req) !== undefined) return 'The API key is not valid: it is mistyped, unknown, revoked or expired.'
  return req.headers.authorization === undefined
    ? 'Send your API key in the header "Authorization: Bearer wfk_…".'
    : 'The Authorization header must be sent once, as "Authorization: Bearer wfk_…".'
}
