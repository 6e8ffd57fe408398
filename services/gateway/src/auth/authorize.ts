import type { Operation } from '@workflow-service/contract'
import { isDatabaseUnavailable, type Principal } from '@workflow-service/database'
import { ApiError, serviceUnavailable, withTimeout } from '@workflow-service/service-kit'
import type { Request, Response } from 'express'
import ipaddr from 'ipaddr.js'
import type { AppContext } from '../app-context.ts'
import type { RateDecision } from '../rate-limits.ts'

type AuthContext = Pick<AppContext, 'keys' | 'keyUses' | 'rateLimits'>

/** Together with the handler's 3 s this keeps every answer within the 5 s of the contract README, "Public API". */
const LOOK_UP_TIMEOUT_MS = 2_000

const BEARER = /^bearer +([^ ]+)$/i

/**
 * Checks each request in the order of the contract README, "Errors": a valid key (401), an organization that is not
 * suspended and the key's scope (403), the rate limit (429). Cached keys and local limits resolve synchronously.
 */
export function authorize(
  ctx: AuthContext,
): (req: Request, res: Response, operation: Operation | undefined) => Principal | Promise<Principal> {
  return (req, res, operation) => {
    const authenticated = authenticate(ctx, req, res)
    return authenticated instanceof Promise
      ? authenticated.then((principal) => admit(ctx, res, operation, principal))
      : admit(ctx, res, operation, authenticated)
  }
}

/** Checks what the key may do, and counts the request against its rate limit. */
function admit(
  { keyUses, rateLimits }: AuthContext,
  res: Response,
  operation: Operation | undefined,
  principal: Principal,
): Principal | Promise<Principal> {
  res.locals['principal'] = principal
  if (principal.isSuspended) throw new ApiError('organization_suspended', 'The organization of this key is suspended.')
  if (operation && !principal.scopes.includes(operation.scope)) {
    throw new ApiError(
      'insufficient_scope',
      `This needs a key with the scope ${operation.scope}; the key has ${principal.scopes.join(', ')}.`,
    )
  }
  const conclude = (decision: RateDecision | undefined): Principal => {
    applyRateLimit(res, decision)
    keyUses.note(principal.apiKeyId)
    return principal
  }
  const decision = rateLimits.take('requests', principal.apiKeyId)
  return decision instanceof Promise ? decision.then(conclude) : conclude(decision)
}

/** Gives the principal of the request's key. */
function authenticate({ keys, rateLimits }: AuthContext, req: Request, res: Response): Principal | Promise<Principal> {
  const key = readKey(req)
  const found = key === undefined ? null : keys.holderOf(key)
  const refuse = async (): Promise<never> => {
    // Only failed authentications count, so a valid key passes whatever else comes from its address.
    applyRateLimit(res, await rateLimits.take('failed-authentications', toNetwork(req.ip ?? '')))
    throw new ApiError('unauthorized', explain(req, key), { headers: { 'WWW-Authenticate': 'Bearer' } })
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

/** Adds the rate limit's headers to the answer, and throws a 429 when the limit is reached. */
function applyRateLimit(res: Response, decision: RateDecision | undefined): void {
  if (!decision) return
  ;(res.locals['answerHeaders'] as string[]).push(...decision.headers)
  if (decision.isAllowed) return
  const seconds = decision.retrySeconds
  const message = `Too many requests. Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.`
  throw new ApiError('rate_limited', message, { headers: { 'Retry-After': String(seconds) } })
}

/** Gives the key of the only Authorization header; undefined when there is none, several, or another scheme. */
function readKey(req: Request): string | undefined {
  const { authorization } = req.headers
  if (authorization === undefined) return undefined
  const names = req.rawHeaders.filter(
    (text, index) => index % 2 === 0 && text.length === 13 && /^authorization$/i.test(text),
  )
  return names.length === 1 ? BEARER.exec(authorization)?.[1] : undefined
}

function explain(req: Request, key: string | undefined): string {
  if (key !== undefined) return 'The API key is not valid: it is mistyped, unknown, revoked or expired.'
  return req.headers.authorization === undefined
    ? 'Send your API key in the header "Authorization: Bearer wfk_…".'
    : 'The Authorization header must be sent once, as "Authorization: Bearer wfk_…".'
}

/** Gives what failed authentications are counted by: an IPv4 address or an IPv6 /64, the smallest network of a subscriber. */
function toNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed instanceof ipaddr.IPv6 ? parsed.parts.slice(0, 4).join(':') : parsed.toString()
}
