import { isName } from '@workflow-service/contract'
import type * as openid from 'openid-client'
import type { OidcConfig } from '../config.ts'

/** What a browser keeps while the person is at the provider. It stays in that browser. */
export interface OidcAttempt {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** The person, as the provider has identified the person. */
export interface OidcIdentity {
  readonly issuer: string
  readonly subject: string
  readonly name: string | null
  /** Null unless the provider has verified it. */
  readonly email: string | null
}

const SCOPE = 'openid email profile'
const TIMEOUT_SECONDS = 10

/** Creates a client. The provider's metadata is read when the first person signs in. */
export function createOidcClient({ issuer, clientId, clientSecret }: OidcConfig, appUrl: string) {
  const redirectUri = `${appUrl}/app/oidc/callback`
  let discovered: Promise<readonly [typeof openid, openid.Configuration]> | undefined
  const discover = async () => {
    const client = await import('openid-client')
    // TLS alone may identify the provider of a token from its token endpoint (OpenID Connect Core, 3.1.3.7), but a
    // proxy that inspects TLS could then sign everybody in. The settings allow http on loopback only.
    const isInsecure = new URL(issuer).protocol === 'http:'
    const execute = [client.enableNonRepudiationChecks, ...(isInsecure ? [client.allowInsecureRequests] : [])]
    const options = { execute, timeout: TIMEOUT_SECONDS }
    return [client, await client.discovery(new URL(issuer), clientId, clientSecret, undefined, options)] as const
  }
  const connect = async () => {
    discovered ??= discover()
    try {
      return await discovered
    } catch (error) {
      discovered = undefined
      throw error
    }
  }
  return {
    /** Begins an attempt. Rejects if the provider does not answer. */
    begin: async () => {
      const [client, configuration] = await connect()
      const attempt = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
      }
      const url = client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: SCOPE,
        state: attempt.state,
        nonce: attempt.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(attempt.verifier),
        code_challenge_method: 'S256',
      })
      return { url, attempt }
    },
    /** Ends the attempt that the provider's answer belongs to. Rejects if the answer is not valid. */
    finish: async (answer: Readonly<Record<string, string | undefined>>, { state, nonce, verifier }: OidcAttempt) => {
      const [client, configuration] = await connect()
      const url = new URL(redirectUri)
      for (const [name, value] of Object.entries(answer)) if (value !== undefined) url.searchParams.set(name, value)
      const tokens = await client.authorizationCodeGrant(configuration, url, {
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
        name: typeof name === 'string' && name !== '' && isName(name) ? name.trim().slice(0, 200) : null,
        email: typeof email === 'string' && isVerified === true ? email : null,
      }
    },
  }
}
