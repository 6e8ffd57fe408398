import { type AppOperation, type Role, ROLES } from '@workflow-service/contract'
import { isOpen } from '@workflow-service/contract/app'
import { findSignedInUser, type SignedInUser, viewerOf } from '@workflow-service/database'
import { ApiError, isJsonInUtf8 } from '@workflow-service/service-kit'
import type { Request, Response } from 'express'
import type { AppServiceContext } from '../app-service-context.ts'
import { readCookie, SIGN_IN_COOKIE } from './cookie.ts'
import type { Principal, Visitor } from './principal.ts'

declare global {
  namespace Express {
    interface Locals {
      /** The person who is signed in. */
      person?: Principal
    }
  }
}

/**
 * Creates the check of every request: where it comes from, who is signed in, and whether the role allows the operation.
 */
export function authorize(ctx: Pick<AppServiceContext, 'config' | 'db'>) {
  return async (req: Request, res: Response, operation: AppOperation | undefined): Promise<Visitor | Principal> => {
    const { cookie: cookies, 'user-agent': userAgent = null } = req.headers
    const visitor: Visitor = { address: req.ip ?? '', userAgent, cookies }
    if (!operation) return visitor
    assertSameOrigin(req, operation, ctx.config.appUrl)
    if (isOpen(operation)) return visitor
    const user = await authenticate(ctx, readCookie(cookies, SIGN_IN_COOKIE))
    const principal: Principal = { ...user, ...visitor, ...viewerOf(user) }
    res.locals.person = principal
    const { access } = operation
    // Of the account, not of an organization, such as the change to another one.
    if (access === 'signed_in') return principal
    const { 'x-organization-id': shown } = req.headers
    // The page of another tab still shows the organization before: what it makes would be in this one.
    if (shown && shown !== user.organizationId && operation.method !== 'get')
      throw new ApiError('changed_meanwhile', 'You have changed to another organization since. Reload the page.')
    if (ROLES.indexOf(user.role) <= ROLES.indexOf(access as Role)) return { ...principal, allowedAs: user.role }
    throw new ApiError('forbidden_for_role', `Only ${access === 'owner' ? '' : 'admins and '}owners can do this.`)
  }
}

/**
 * Finds the person of a sign-in.
 * @throws ApiError 401 without a token, or when the sign-in has ended
 */
export async function authenticate(
  { db }: Pick<AppServiceContext, 'db'>,
  token: string | undefined,
): Promise<SignedInUser> {
  const user = token === undefined ? undefined : await findSignedInUser(db, token)
  if (!user) throw notSignedIn()
  return user
}

export function notSignedIn(): ApiError {
  return new ApiError('unauthorized', 'Sign in first.')
}

/**
 * Refuses requests that a page of another origin may have sent with the person's cookie. Browsers send `Sec-Fetch-Site`
 * or, older ones, `Origin`; a page cannot set either. A form cannot send `application/json`.
 * @throws ApiError 403 `cross_site_request`
 */
function assertSameOrigin(req: Request, operation: AppOperation, appUrl: string | undefined): void {
  const isRead = operation.method === 'get'
  if (isRead && operation.id !== 'streamEvents') return
  const { 'sec-fetch-site': site, origin, 'content-type': contentType } = req.headers
  const isSameOrigin = site === undefined ? origin !== undefined && origin === appUrl : site === 'same-origin'
  if (isSameOrigin && (isRead || isJsonInUtf8(contentType ?? ''))) return
  throw new ApiError(
    'cross_site_request',
    'Requests that change something must come from the application itself, with Content-Type: application/json.',
  )
}
