import type { MeOut } from '@workflow-service/contract'
import {
  changePassword,
  confirmSignIn,
  endSignIn,
  findAccountById,
  listSignIns,
  recordAuditEvent,
  saveAccount,
  type SignedInUser,
  switchOrganization,
} from '@workflow-service/database'
import { ApiError, notFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { authenticate, notSignedIn } from '../../auth/authorize.ts'
import { readCookie, SIGN_IN_COOKIE, signInCookie, setCookie } from '../../auth/cookie.ts'
import { hashNewPassword, verifyPassword } from '../../auth/passwords.ts'
import { assertConfirmed, type Visitor } from '../../auth/principal.ts'
import { type AppHandlers, ResponseWithHeaders } from '../app-handlers.ts'

/** Handlers of the person who is signed in. */
export function meHandlers(ctx: AppServiceContext) {
  // Read again: the change may be one of the name, the address or the organization.
  const readAgain = async ({ cookies }: Visitor) =>
    await toMe(ctx, await authenticate(ctx, readCookie(cookies, SIGN_IN_COOKIE)))
  return {
    getMe: ({ principal }) => toMe(ctx, principal),
    saveMe: async (request) => {
      const { principal, body } = request
      await saveAccount(ctx.db, body, request)
      ctx.changeNotices.add(principal.organizationId, 'users')
      return await readAgain(principal)
    },
    signOut: async (request) => {
      await endSignIn(ctx.db, request.principal.signInId, request)
      return new ResponseWithHeaders({ 'Set-Cookie': setCookie(SIGN_IN_COOKIE, '', 0) })
    },
    changePassword: async (request) => {
      const { principal, body } = request
      assertConfirmed(principal)
      const { organization } = await toMe(ctx, principal)
      const words = [organization.name, principal.email]
      const passwordHash = await hashNewPassword(principal, 'new_password', body.new_password, words)
      if (!(await changePassword(ctx.db, passwordHash, request))) throw notSignedIn()
      return await readAgain(principal)
    },
    switchOrganization: async (request) => {
      const { principal, body } = request
      const result = await switchOrganization(ctx.db, body.organization_id, request)
      if (!result) throw notFound('Organization')
      if (result === 'signed_out') throw notSignedIn()
      return await readAgain(principal)
    },
    confirmPassword: async (request) => {
      const { principal, body } = request
      const isConfirmed = await ctx.signInLimits.attempt(principal, principal.email, async (verifying) => {
        const find = () => findAccountById(ctx.db, principal.accountId)
        return (await verifying(verifyPassword(principal, body.password, find))).isRight || undefined
      })
      if (!isConfirmed) {
        await recordAuditEvent(ctx.db.pool, { ...request, action: 'account.confirm_failed' })
        throw new ApiError('sign_in_failed', 'The password is not right.')
      }
      if (!(await confirmSignIn(ctx.db, request))) throw notSignedIn()
      return await readAgain(principal)
    },
    listSignIns: async ({ principal }) => ({ data: await listSignIns(ctx.db, principal) }),
    endSignIn: async (request) => {
      if (!(await endSignIn(ctx.db, request.params.sign_in_id, request))) throw notFound('Sign-in')
    },
  } satisfies Partial<AppHandlers>
}

/** Returns the response to a request that has signed a person in: who that is, and the cookie. */
export async function signedInResponse(ctx: AppServiceContext, token: string) {
  return new ResponseWithHeaders({ 'Set-Cookie': signInCookie(token) }, await toMe(ctx, await authenticate(ctx, token)))
}

async function toMe(ctx: AppServiceContext, user: SignedInUser): Promise<MeOut> {
  const account = await findAccountById(ctx.db, user.accountId)
  const organization = account?.organizations.find(({ id }) => id === user.organizationId)
  if (!account || !organization) throw notSignedIn()
  const { id, email, name, hasOidc, passwordHash, organizations } = account
  return {
    account: { id, email, name, has_password: passwordHash !== null, has_oidc: hasOidc },
    user_id: user.userId,
    role: user.role,
    organization: { id: organization.id, name: organization.name, is_suspended: organization.isSuspended },
    organizations: organizations.map((each) => ({ id: each.id, name: each.name, role: each.role })),
    confirmed_until: user.confirmedUntil?.toISOString() ?? null,
    api_url: ctx.config.apiUrl ?? null,
  }
}
