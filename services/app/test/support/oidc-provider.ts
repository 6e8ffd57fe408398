import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import { jest } from '@jest/globals'
import { close, listen } from '@workflow-service/testkit'

/** What the provider says of the person who signs in. */
export interface OidcPerson {
  readonly sub: string
  readonly email: string
  readonly email_verified: boolean
  readonly name?: string
}

export const OIDC_CLIENT = { id: 'workflow-service', secret: 'the-secret-of-the-client-0123456789' }

/** An OpenID Connect provider on loopback. Every person signs in at once, without a page. */
export interface TestProvider {
  readonly issuer: string
  person: OidcPerson
  /** Publishes another key than the one that signs, under its id. */
  hasForeignKey: boolean
  close(): Promise<void>
}

interface ProviderModule {
  default: new (
    issuer: string,
    configuration: object,
  ) => {
    callback(): (req: unknown, res: unknown) => void
    interactionFinished(req: unknown, res: unknown, result: object): Promise<void>
    Grant: new (values: object) => { addOIDCScope(scope: string): void; save(): Promise<string> }
    interactionDetails(req: unknown, res: unknown): Promise<{ params: { client_id: string } }>
  }
}

const KEY = { kid: 'of-the-provider', use: 'sig', alg: 'RS256' }
const createKey = () => generateKeyPairSync('rsa', { modulusLength: 2048 })

/** Starts the provider. `redirectUri` is the only one that it accepts. */
export async function startOidcProvider(redirectUri: string): Promise<TestProvider> {
  // The package has no types.
  const name = 'oidc-provider'
  const { default: Provider } = (await import(name)) as ProviderModule
  // It prints hints about settings for production.
  jest.spyOn(console, 'info').mockImplementation(() => {})
  jest.spyOn(console, 'warn').mockImplementation(() => {})
  const server = createServer()
  const issuer = `http://127.0.0.1:${await listen(server)}`
  const state: TestProvider = {
    person: { sub: 'nobody', email: 'nobody@acme.test', email_verified: true },
    hasForeignKey: false,
    close: () => close(server),
    issuer,
  }
  const foreignKey = { ...createKey().publicKey.export({ format: 'jwk' }), ...KEY }
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: OIDC_CLIENT.id,
        client_secret: OIDC_CLIENT.secret,
        redirect_uris: [redirectUri],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: () => '/interaction' },
    findAccount: (_ctx: unknown, sub: string) => ({ accountId: sub, claims: () => state.person }),
    cookies: { keys: ['for-tests-only'] },
    jwks: { keys: [{ ...createKey().privateKey.export({ format: 'jwk' }), ...KEY }] },
  })
  const handle = provider.callback()
  const interact = async (req: unknown, res: unknown): Promise<void> => {
    const { params } = await provider.interactionDetails(req, res)
    const grant = new provider.Grant({ accountId: state.person.sub, clientId: params.client_id })
    grant.addOIDCScope('openid email profile')
    const result = { login: { accountId: state.person.sub }, consent: { grantId: await grant.save() } }
    await provider.interactionFinished(req, res, result)
  }
  server.on('request', (req, res) => {
    if (req.url?.startsWith('/interaction')) void interact(req, res)
    else if (req.url === '/jwks' && state.hasForeignKey) res.end(JSON.stringify({ keys: [foreignKey] }))
    else handle(req, res)
  })
  return state
}
