import {
  acceptEmail,
  acceptInvitation,
  acceptReset,
  type CheckedAccount,
  completeSetup,
  findAccountByEmail,
  findAccountById,
  findOneTimeLink,
  findSignedInUser,
  foldCase,
  hasAccounts,
  type LinkPerson,
  type OneTimeLink,
  recordFailedSignIn,
  signIn,
  type UsedLink,
} from '@workflow-service/database'
import { ApiError, invalidFields } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { readCookie, setCookie, SIGN_IN_COOKIE, TRIAL_COOKIE } from '../../auth/cookie.ts'
import { hashNewPassword, verifyPassword } from '../../auth/passwords.ts'
import { assertConfirmed, type Visitor } from '../../auth/principal.ts'
import { type AppHandlers, type AppRequestOf, ResponseWithHeaders } from '../app-handlers.ts'
import { signedInResponse } from './me.ts'

type VisitorRequest = Pick<AppRequestOf<'signIn'>, 'principal' | 'requestId'>

/** Handlers of people who are not signed in yet: sign-in with a password, and one-time links. */
export function signInHandlers(ctx: AppServiceContext) {
  return {
    getSetup: async () => ({
      needs_setup: !(await hasAccounts(ctx.db)),
      has_oidc: ctx.config.oidc !== undefined,
    }),
    tryCookie: ({ principal }) => {
      const isKept = readCookie(principal.cookies, TRIAL_COOKIE) !== undefined
      return new ResponseWithHeaders({ 'Set-Cookie': setCookie(TRIAL_COOKIE, '1', 60) }, { is_kept: isKept })
    },
    signIn: async (request) => {
      const { email, password } = request.body
      const account = await checkAccount(ctx, request, email, password)
      const token = account.entrance && (await signIn(ctx.db, account, account.entrance, 'password', request))
      if (token === undefined) throw signInFailed()
      return await signedInResponse(ctx, token)
    },
    openLink: async ({ body }) => {
      const { kind, organizationName, user, newEmail, expiresAt } = await findLink(ctx, body.token)
      // Only what the organization knows of the person: who makes a link must not learn from it who has an account.
      return {
        kind,
        organization_name: organizationName,
        email: newEmail ?? user?.email ?? null,
        name: user?.name || null,
        role: kind === 'setup' ? 'owner' : kind === 'invitation' ? (user?.role ?? null) : null,
        expires_at: expiresAt.toISOString(),
      }
    },
    setUp: async (request) => {
      const { token, organization_name: organizationName, name, email, password } = request.body
      const link = await findLink(ctx, token, 'setup')
      const words = [link.organizationName ?? organizationName, email]
      const person = await checkPerson(ctx, request, { email, name, password, words })
      const used = await completeSetup(ctx.db, link, { ...person, email }, organizationName, request)
      return await signInWithLink(ctx, used, request)
    },
    acceptLink: async (request) => {
      const link = await findLink(ctx, request.body.token)
      return await signInWithLink(ctx, await useLink(ctx, request, link), request)
    },
  } satisfies Partial<AppHandlers>
}

async function useLink(
  ctx: AppServiceContext,
  request: AppRequestOf<'acceptLink'>,
  link: OneTimeLink,
): Promise<Awaited<ReturnType<typeof acceptInvitation>>> {
  const { kind, user } = link
  if (!user) throw linkNotUsable()
  const { name, password } = request.body
  const { email } = user
  const words = [link.organizationName ?? '', email]
  if (password === undefined) {
    const person = kind === 'invitation' && (await findPersonOfProvider(ctx, request.principal, email))
    if (!person) throw invalidFields([{ field: 'password', code: 'missing', message: 'is required' }])
    return await acceptInvitation(ctx.db, link, person, request)
  }
  switch (kind) {
    case 'invitation': {
      const person = await checkPerson(ctx, request, { email, name: name ?? (user.name || email), password, words })
      return await acceptInvitation(ctx.db, link, person, request)
    }
    case 'reset': {
      const passwordHash = await hashNewPassword(request.principal, 'password', password, words)
      return await acceptReset(ctx.db, link, passwordHash, request)
    }
    case 'email': {
      const account = link.accountId === null ? undefined : await findAccountById(ctx.db, link.accountId)
      if (!account) throw linkNotUsable()
      const { id: accountId, passwordHash } = await checkAccount(ctx, request, account.email, password)
      const used = await acceptEmail(ctx.db, link, { accountId, passwordHash }, request)
      if (used !== 'email_taken' || link.newEmail === null) return used
      await countProbe(ctx, request, link.newEmail)
      throw new ApiError('email_taken', 'This email address is used already. Ask for a link with another one.')
    }
    default:
      throw linkNotUsable()
  }
}

/**
 * Counts the use of a link for the address of another account as a failed sign-in to that account. The person has to
 * learn that the address is taken, and there is no mail that could say so to its owner alone: so this bounds how many
 * addresses can be tried, 20 in 5 minutes from a network, and the organizations of each see it in their audit logs.
 * Each takes a new link, which is in that of its maker.
 */
async function countProbe(ctx: AppServiceContext, request: VisitorRequest, email: string): Promise<void> {
  await ctx.signInLimits.attempt(request.principal, email, async () => {
    await recordFailedSignIn(ctx.db, await findAccountByEmail(ctx.db, email), request)
  })
}

/**
 * Finds the account with this email address and password. An unknown address takes the same steps and the same time;
 * with `create`, it gets what that makes.
 */
async function checkAccount<Created = never>(
  ctx: AppServiceContext,
  request: VisitorRequest,
  email: string,
  password: string,
  create?: () => Promise<Created>,
) {
  const { principal } = request
  const checked = await ctx.signInLimits.attempt(principal, email, async (verifying) => {
    const find = () => findAccountByEmail(ctx.db, email)
    const { found, isRight } = await verifying(verifyPassword(principal, password, find))
    if (isRight) return found
    if (found || !create) await recordFailedSignIn(ctx.db, found, request)
    const created = await create?.()
    return found ? undefined : created
  })
  if (!checked) throw signInFailed()
  return checked
}

/**
 * Finds or prepares the account of a person with a link: an existing one needs its password, a new one gets it. A
 * password that is neither right nor good enough for a new account is refused in the same way and after the same time,
 * whether the address has an account or not.
 */
async function checkPerson(
  ctx: AppServiceContext,
  request: VisitorRequest,
  { email, name, password, words }: { email: string; name: string; password: string; words: readonly string[] },
): Promise<LinkPerson> {
  const person = await checkAccount(ctx, request, email, password, async () => ({
    name,
    email,
    passwordHash: await hashNewPassword(request.principal, 'password', password, words),
  }))
  return 'id' in person ? { accountId: person.id, passwordHash: person.passwordHash } : person
}

/**
 * Finds the person who is signed in, if the account has no password, and the address that its provider verified is
 * `email`. The link signs in anew, which confirms: without a confirmation before it, a stolen cookie would be enough to
 * set a password.
 * @throws ApiError 403 `confirmation_required`
 */
async function findPersonOfProvider(
  { db }: AppServiceContext,
  { cookies }: Visitor,
  email: string,
): Promise<CheckedAccount | undefined> {
  const user = await findSignedInUser(db, readCookie(cookies, SIGN_IN_COOKIE) ?? '')
  const account = user && (await findAccountById(db, user.accountId))
  if (account?.passwordHash !== null || foldCase(account.email) !== foldCase(email)) return undefined
  assertConfirmed(user!)
  return { accountId: account.id, passwordHash: null }
}

async function signInWithLink(
  ctx: AppServiceContext,
  used: UsedLink | 'email_taken' | 'password_changed' | undefined,
  request: VisitorRequest,
) {
  if (!used) throw linkNotUsable()
  if (used === 'email_taken') {
    throw new ApiError('email_taken', 'This email address got an account meanwhile. Open the link again to use it.')
  }
  if (used === 'password_changed') throw signInFailed()
  const { accountId: id, name, organizationId, userId } = used
  ctx.changeNotices.add(organizationId, 'users')
  const token = await signIn(ctx.db, { id, name }, { id: organizationId, userId }, 'link', request)
  if (token === undefined) throw signInFailed()
  return await signedInResponse(ctx, token)
}

async function findLink(ctx: AppServiceContext, token: string, kind?: OneTimeLink['kind']): Promise<OneTimeLink> {
  const link = await findOneTimeLink(ctx.db, token)
  if (!link || (kind !== undefined && link.kind !== kind)) throw linkNotUsable()
  return link
}

function linkNotUsable(): ApiError {
  return new ApiError(
    'link_not_usable',
    'This link was used, replaced or has expired. If you have used it, sign in. Otherwise ask for a new one.',
  )
}

function signInFailed(): ApiError {
  return new ApiError('sign_in_failed', 'Email address or password are not right, or the account cannot sign in.')
}
