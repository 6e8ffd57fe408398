import type { Operation } from '@workflow-service/contract'
import type { Principal } from '@workflow-service/database'
import { ApiError, mapMaybePromise } from '@workflow-service/service-kit'
import type { Request, Response } from 'express'
import type { GatewayContext } from '../gateway-context.ts'
import { applyRateLimit } from '../rate-limit/rate-limits.ts'
import { authenticate } from './authenticate.ts'

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
      checkPermission(principal, operation)
      ctx.apiKeyUsage.record(principal.apiKeyId)
      return mapMaybePromise(ctx.rateLimits.consume('requests', principal.apiKeyId), (decision) => {
        applyRateLimit(res, decision)
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
      checkPermission(principal, operation)
      return principal
    })
}

/** @throws ApiError 403. */
function checkPermission({ isSuspended, scopes }: Principal, operation: Operation | undefined): void {
  if (isSuspended) throw new ApiError('organization_suspended', 'The organization of this key is suspended.')
  if (!operation || scopes.includes(operation.scope)) return
  throw new ApiError(
    'insufficient_scope',
    `This needs a key with the scope ${operation.scope}; the key has ${scopes.join(', ')}.`,
  )
}
