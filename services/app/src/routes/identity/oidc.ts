import {
  acceptInvitation,
  type Account,
  findAccountByEmail,
  findAccountById,
  findAccountByOidc,
  findInvitation,
  signIn,
} from '@workflow-service/database'
import { describeError, notFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import { readCookie, signInCookie, setCookie } from '../../auth/cookie.ts'
import { createOidcClient, type OidcAttempt, type OidcIdentity } from '../../auth/oidc-client.ts'
import { AnswerWithHeaders, type AppHandlers, type AppRequestOf } from '../app-handlers.ts'

const ATTEMPT_COOKIE = '__Host-oidc'
const ATTEMPT_SECONDS = 600

/** What the sign-in page explains. */
type OidcProblem = 'oidc_unavailable' | 'oidc_failed' | 'oidc_not_invited'

/** Handlers of the sign-in with OpenID Connect. The browser navigates here, so every answer leads to a page. */
export function oidcHandlers(ctx: AppServiceContext) {
  const { oidc, appUrl } = ctx.config
  const client = oidc && appUrl !== undefined ? createOidcClient(oidc, appUrl) : undefined
  const fail = (requestId: string, problem: OidcProblem, error?: unknown) => {
    ctx.logger.warn({ request_id: requestId, problem, error: error && describeError(error) }, 'sign_in.oidc_failed')
    return redirectTo(`/sign-in?error=${problem}`, setCookie(ATTEMPT_COOKIE, '', 0))
  }
  return {
    startOidc: async ({ query, requestId }) => {
      if (!client) throw notFound('Sign-in with OpenID Connect')
      try {
        const { url, attempt } = await client.begin()
        const kept = JSON.stringify({ ...attempt, next: localPath(query.next) })
        const value = Buffer.from(kept).toString('base64url')
        return redirectTo(url.href, setCookie(ATTEMPT_COOKIE, value, ATTEMPT_SECONDS))
      } catch (error) {
        return fail(requestId, 'oidc_unavailable', error)
      }
    },
    finishOidc: async (request) => {
      if (!client) throw notFound('Sign-in with OpenID Connect')
      const { principal, query, requestId } = request
      const kept = readAttempt(readCookie(principal.cookies, ATTEMPT_COOKIE))
      if (!kept) return fail(requestId, 'oidc_failed')
      let identity: OidcIdentity
      try {
        identity = await client.finish(query, kept)
      } catch (error) {
        return fail(requestId, 'oidc_failed', error)
      }
      const account =
        (await findAccountByOidc(ctx.db, identity.issuer, identity.subject)) ??
        (await acceptWithIdentity(ctx, identity, request))
      const [membership] = account?.organizations ?? []
      if (!account || !membership) return fail(requestId, 'oidc_not_invited')
      const token = await signIn(ctx.db, account, membership, 'oidc', request)
      if (token === undefined) return fail(requestId, 'oidc_failed')
      return redirectTo(localPath(kept.next), [...setCookie(ATTEMPT_COOKIE, '', 0), ...signInCookie(token)])
    },
  } satisfies Partial<AppHandlers>
}

/**
 * Accepts the open invitation of the verified email address as a new account. An existing account with that address is
 * not used: who controls the address at the provider need not be the person of the account.
 */
async function acceptWithIdentity(
  ctx: AppServiceContext,
  { issuer, subject, name, email }: OidcIdentity,
  request: AppRequestOf<'finishOidc'>,
): Promise<Account | undefined> {
  const invitation = email === null ? undefined : await findInvitation(ctx.db, email)
  if (!invitation?.user || email === null || (await findAccountByEmail(ctx.db, email))) return undefined
  const person = { name: name ?? (invitation.user.name || email), email, passwordHash: null, oidc: { issuer, subject } }
  const used = await acceptInvitation(ctx.db, null, invitation, person, request)
  // The person may have accepted another invitation at the same moment.
  if (typeof used === 'string') return await findAccountByOidc(ctx.db, issuer, subject)
  return used && (await findAccountById(ctx.db, used.accountId))
}

function redirectTo(location: string, cookies: readonly string[]) {
  return new AnswerWithHeaders<void>(['Location', location, ...cookies])
}

/**
 * Returns the path if it leads to this application, else `/`. A browser reads a path that begins with two slashes as a
 * host.
 */
export function localPath(next: string | undefined): string {
  const base = 'http://application.invalid'
  const url = next?.startsWith('/') ? URL.parse(next, base) : null
  // A path such as `/.//host` has two slashes only after it was normalized.
  return url?.origin === base && !url.pathname.startsWith('//') ? `${url.pathname}${url.search}` : '/'
}

function readAttempt(cookie: string | undefined): (OidcAttempt & { next?: string }) | undefined {
  try {
    const kept = JSON.parse(Buffer.from(cookie ?? '', 'base64url').toString()) as Partial<OidcAttempt>
    return kept.state && kept.nonce && kept.verifier ? (kept as OidcAttempt) : undefined
  } catch {
    return undefined
  }
}
