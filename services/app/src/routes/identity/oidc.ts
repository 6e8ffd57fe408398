import { isName } from '@workflow-service/contract'
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
import type { Visitor } from '../../auth/principal.ts'
import type { OidcConfig } from '../../config.ts'
import { type AppHandlers, type AppRequestOf, ResponseWithHeaders } from '../app-handlers.ts'

const ATTEMPT_COOKIE = '__Host-oidc'
/** Browsers drop a cookie of more than 4,096 bytes. */
const ATTEMPTS_MAX_LENGTH = 3_800
const NEXT_MAX_LENGTH = 1_000
const ATTEMPT_SECONDS = 600
const TIMEOUT_SECONDS = 10

/** What a browser keeps while the person is at the provider. It stays in that browser. */
interface Attempt {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
  /** Where the person goes afterwards. */
  readonly next: string
}

/** What the sign-in page explains. */
type OidcProblem = 'oidc_unavailable' | 'oidc_failed' | 'oidc_not_invited'

/** Handlers of the sign-in with OpenID Connect. The browser navigates here, so every response leads to a page. */
export function oidcHandlers(ctx: AppServiceContext) {
  const redirectUri = `${ctx.config.appUrl}/app/oidc/callback`
  const provider = ctx.config.oidc && connector(ctx.config.oidc)
  const fail = (requestId: string, problem: OidcProblem, next: string, cookies: readonly string[], error?: unknown) => {
    ctx.logger.warn({ request_id: requestId, problem, error: error && describeError(error) }, 'sign_in.oidc_failed')
    return redirectTo(`/sign-in?error=${problem}${next === '/' ? '' : `&next=${encodeURIComponent(next)}`}`, cookies)
  }
  return {
    startOidc: async ({ principal, query, requestId }) => {
      if (!provider) throw notFound('Sign-in with OpenID Connect')
      const next = localPath(query.next)
      try {
        const { client, configuration } = await provider.connect()
        const verifier = client.randomPKCECodeVerifier()
        const attempt = { state: client.randomState(), nonce: client.randomNonce() }
        const url = client.buildAuthorizationUrl(configuration, {
          ...attempt,
          redirect_uri: redirectUri,
          scope: 'openid email profile',
          code_challenge: await client.calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
        })
        const kept: Attempt = { ...attempt, verifier, next: next.length > NEXT_MAX_LENGTH ? '/' : next }
        return redirectTo(url.href, [keepAttempts([kept, ...readAttempts(principal)])])
      } catch (error) {
        return fail(requestId, 'oidc_unavailable', next, [], error)
      }
    },
    finishOidc: async (request) => {
      if (!provider) throw notFound('Sign-in with OpenID Connect')
      const { principal, query, requestId } = request
      const attempts = readAttempts(principal)
      const attempt = attempts.find(({ state }) => state === query.state)
      if (!attempt) return fail(requestId, 'oidc_failed', '/', [])
      const others = [keepAttempts(attempts.filter((each) => each !== attempt))]
      const next = localPath(attempt.next)
      let identity: Identity
      try {
        const answer = new URL(redirectUri)
        answer.search = new URLSearchParams(query).toString()
        identity = await identify(await provider.connect(), answer, attempt)
      } catch (error) {
        provider.forget()
        return fail(requestId, 'oidc_failed', next, others, error)
      }
      const known = await findAccountByOidc(ctx.db, identity)
      const account = known?.entrance ? known : await acceptWithIdentity(ctx, identity, known, request)
      if (!account?.entrance) return fail(requestId, 'oidc_not_invited', next, others)
      const token = await signIn(ctx.db, account, account.entrance, 'oidc', request)
      if (token === undefined) return fail(requestId, 'oidc_failed', next, others)
      return redirectTo(next, [...others, signInCookie(token)])
    },
  } satisfies Partial<AppHandlers>
}

/** Reads the provider's metadata when the first person signs in, and again after a sign-in that failed. */
function connector({ issuer, clientId, clientSecret }: OidcConfig) {
  let connection: ReturnType<typeof discover> | undefined
  const discover = async () => {
    const client = await import('openid-client')
    // TLS alone may identify the provider of a token from its token endpoint (OpenID Connect Core, 3.1.3.7), but a
    // proxy that inspects TLS could then sign everybody in. The settings allow http on loopback only.
    const isInsecure = new URL(issuer).protocol === 'http:'
    const execute = [client.enableNonRepudiationChecks, ...(isInsecure ? [client.allowInsecureRequests] : [])]
    const options = { execute, timeout: TIMEOUT_SECONDS }
    return {
      client,
      configuration: await client.discovery(new URL(issuer), clientId, clientSecret, undefined, options),
    }
  }
  const forget = (): void => {
    connection = undefined
  }
  return {
    connect: () =>
      (connection ??= discover().catch((error: unknown) => {
        forget()
        throw error
      })),
    /** The provider may have moved what its metadata names, or changed its keys. */
    forget,
  }
}

type Connection = Awaited<ReturnType<ReturnType<typeof connector>['connect']>>
type Identity = Awaited<ReturnType<typeof identify>>

/** Ends the attempt that the provider's answer belongs to. Rejects if the answer is not valid. */
async function identify({ client, configuration }: Connection, answer: URL, { state, nonce, verifier }: Attempt) {
  const tokens = await client.authorizationCodeGrant(configuration, answer, {
    expectedState: state,
    expectedNonce: nonce,
    pkceCodeVerifier: verifier,
    idTokenExpected: true,
  })
  const idToken = tokens.claims()!
  // Providers may give the email address only here.
  const claims =
    idToken['email'] === undefined && configuration.serverMetadata().userinfo_endpoint
      ? await client.fetchUserInfo(configuration, tokens.access_token, idToken.sub)
      : idToken
  const { email, email_verified: isVerified, name } = claims as Record<string, unknown>
  return {
    issuer: idToken.iss,
    subject: idToken.sub,
    name: typeof name === 'string' && name !== '' && isName(name) ? name.trim() : null,
    /** Null unless the provider has verified it. */
    email: typeof email === 'string' && isVerified === true ? email : null,
  }
}

/**
 * Accepts the open invitation of the verified email address as a new account, or as that of the identity, if the person
 * belongs to no organization any more. Another account with that address is not used: who controls the address at the
 * provider need not be the person of the account. A person of an organization accepts further invitations by their
 * links, so that no sign-in leads to an organization that the person did not choose.
 */
async function acceptWithIdentity(
  ctx: AppServiceContext,
  { issuer, subject, name, email }: Identity,
  known: Account | undefined,
  request: AppRequestOf<'finishOidc'>,
): Promise<Account | undefined> {
  const invitation = email === null ? undefined : await findInvitation(ctx.db, email)
  if (!invitation?.user || email === null) return undefined
  const ofAddress = await findAccountByEmail(ctx.db, email)
  if (ofAddress && ofAddress.id !== known?.id) return undefined
  const person = known
    ? { accountId: known.id, passwordHash: known.passwordHash }
    : { name: name ?? (invitation.user.name || email), email, passwordHash: null, oidc: { issuer, subject } }
  const used = await acceptInvitation(ctx.db, invitation, person, request)
  // The person may have accepted another invitation at the same moment.
  if (typeof used === 'string') return await findAccountByOidc(ctx.db, { issuer, subject })
  if (!used) return undefined
  ctx.changeNotices.add(used.organizationId, 'users')
  return await findAccountById(ctx.db, used.accountId)
}

function redirectTo(location: string, cookies: readonly string[]) {
  return new ResponseWithHeaders<void>({ Location: location, 'Set-Cookie': cookies })
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

/** The newest attempt is where an application of 1.0.0 has its only one: it may begin or end there in an upgrade. */
type KeptAttempts = Attempt & { readonly others?: readonly Attempt[] }

/** The attempts of the tabs of a browser, the newest first. */
function readAttempts({ cookies }: Visitor): Attempt[] {
  try {
    const kept = Buffer.from(readCookie(cookies, ATTEMPT_COOKIE) ?? '', 'base64url').toString()
    const { others = [], ...newest } = JSON.parse(kept) as KeptAttempts
    return [newest, ...others].filter(({ state, nonce, verifier }) => state && nonce && verifier)
  } catch {
    return []
  }
}

/** Returns the `Set-Cookie` that keeps attempts, as many of the newest as fit. */
function keepAttempts(attempts: readonly Attempt[]): string {
  const [newest, ...others] = attempts
  const value = Buffer.from(JSON.stringify({ ...newest, others })).toString('base64url')
  if (value.length > ATTEMPTS_MAX_LENGTH) return keepAttempts(attempts.slice(0, -1))
  return setCookie(ATTEMPT_COOKIE, value, attempts.length > 0 ? ATTEMPT_SECONDS : 0)
}
