import {
  acceptInvitation,
  acceptReset,
  completeSetup,
  findAccountByEmail,
  findOneTimeLink,
  hasAccounts,
  type OneTimeLink,
  recordFailedSignIn,
  signIn,
  type UsedLink,
} from '@workflow-service/database'
import { ApiError } from '@workflow-service/service-kit'
import type { AppContext } from '../../app-context.ts'
import { hashNewPassword, verifyPassword } from '../../auth/passwords.ts'
import type { Visitor } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { answerSignedIn } from './me.ts'

interface VisitorRequest {
  readonly principal: Visitor
  readonly requestId: string
}

/** Handlers of people who are not signed in yet: sign-in with a password, and one-time links. */
export function signInHandlers(ctx: AppContext) {
  return {
    getSetup: async () => ({
      body: { needs_setup: !(await hasAccounts(ctx.db)), has_oidc: ctx.config.oidc !== undefined },
    }),
    signIn: async (request) => {
      const { email, password } = request.body
      const account = await checkAccount(ctx, request, email, password)
      const [membership] = account.organizations
      if (!membership) throw signInFailed()
      return await answerSignedIn(ctx, await signIn(ctx.db, account, membership, 'password', request))
    },
    openLink: async ({ body }) => {
      const link = await findLink(ctx, body.token)
      const { kind, organizationName, user, expiresAt } = link
      const account = user && kind === 'invitation' ? await findAccountByEmail(ctx.db, user.email) : undefined
      return {
        body: {
          kind,
          organization_name: organizationName,
          email: user?.email ?? null,
          name: account?.name ?? (user?.name || null),
          role: kind === 'reset' ? null : (user?.role ?? 'owner'),
          has_account: account !== undefined,
          expires_at: expiresAt.toISOString(),
        },
      }
    },
    setUp: async (request) => {
      const { token, organization_name: organizationName, name, email, password } = request.body
      const link = await findLink(ctx, token, 'setup')
      const words = [link.organizationName ?? organizationName, email]
      const person = await checkPerson(ctx, request, { email, name, password, words })
      const used = await completeSetup(ctx.db, token, link, { ...person, email }, organizationName, request)
      return await answerSignedIn(ctx, await signInWithLink(ctx, used, request))
    },
    acceptLink: async (request) => {
      const { token, name, password } = request.body
      const link = await findLink(ctx, token)
      if (link.kind === 'setup' || !link.user) throw linkNotUsable()
      const { email } = link.user
      const words = [link.organizationName ?? '', email]
      const used =
        link.kind === 'reset'
          ? await acceptReset(
              ctx.db,
              token,
              link,
              await hashNewPassword(request.principal, 'password', password, words),
              request,
            )
          : await acceptInvitation(
              ctx.db,
              token,
              link,
              await checkPerson(ctx, request, { email, name: name ?? (link.user.name || email), password, words }),
              request,
            )
      ctx.hints.add(link.organizationId ?? '', 'users')
      return await answerSignedIn(ctx, await signInWithLink(ctx, used, request))
    },
  } satisfies Partial<AppHandlers>
}

/** Finds the account with this email address and password. An unknown address takes the same steps and the same time. */
async function checkAccount(ctx: AppContext, request: VisitorRequest, email: string, password: string) {
  const { principal } = request
  const account = await ctx.signInLimits.attempt(principal, email, async () => {
    const found = await findAccountByEmail(ctx.db, email)
    const isRight = await verifyPassword(principal, password, found?.passwordHash ?? null)
    if (isRight) return found
    await recordFailedSignIn(ctx.db, found, request)
    return undefined
  })
  if (!account) throw signInFailed()
  return account
}

/** Finds or prepares the account of a person with a link: an existing one needs its password, a new one gets it. */
async function checkPerson(
  ctx: AppContext,
  request: VisitorRequest,
  { email, name, password, words }: { email: string; name: string; password: string; words: readonly string[] },
) {
  if (await findAccountByEmail(ctx.db, email)) {
    const { id } = await checkAccount(ctx, request, email, password)
    return { accountId: id }
  }
  return { name, email, passwordHash: await hashNewPassword(request.principal, 'password', password, words) }
}

async function signInWithLink(
  ctx: AppContext,
  used: UsedLink | 'email_taken' | undefined,
  request: VisitorRequest,
): Promise<string> {
  if (!used) throw linkNotUsable()
  if (used === 'email_taken') {
    throw new ApiError('email_taken', 'This email address got an account meanwhile. Open the link again to use it.')
  }
  const { accountId: id, name, organizationId, userId } = used
  return await signIn(ctx.db, { id, name }, { id: organizationId, userId }, 'link', request)
}

async function findLink(ctx: AppContext, token: string, kind?: OneTimeLink['kind']): Promise<OneTimeLink> {
  const link = await findOneTimeLink(ctx.db, token)
  if (!link || (kind !== undefined && link.kind !== kind)) throw linkNotUsable()
  return link
}

function linkNotUsable(): ApiError {
  return new ApiError('link_not_usable', 'This link was used, replaced or has expired. Ask for a new one.')
}

function signInFailed(): ApiError {
  return new ApiError('sign_in_failed', 'Email address or password are not right, or the account cannot sign in.')
}
