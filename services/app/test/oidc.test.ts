import { generateKeyPairSync, hash } from 'node:crypto'
import { createServer } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { newId } from '@workflow-service/database'
import { close, hearNotices, listen } from '@workflow-service/testkit'
import { localPath } from '../src/routes/identity/oidc.ts'
import { type Caller, useTestApp } from './support/use-app.ts'

const APP_URL = 'http://localhost:8083'
const CLIENT = { id: 'workflow-service', secret: 'the-secret-of-the-client-0123456789' }

/** What the provider says of the person who signs in. */
interface ProviderPerson {
  readonly sub: string
  readonly email: string
  readonly email_verified: boolean
  readonly name?: string
}
const GRACE: ProviderPerson = { sub: 'grace', email: 'grace@acme.test', email_verified: true }

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

/** An OpenID Connect provider on loopback. Every person signs in at once, without a page. */
const provider = {
  issuer: '',
  person: GRACE,
  /** Publishes another key than the one that signs, under its id. */
  hasForeignKey: false,
  /** Gives tokens at another address, which its metadata names from then on. */
  hasMoved: false,
}
const METADATA = '/.well-known/openid-configuration'
const server = createServer()

beforeAll(async () => {
  // The package has no types.
  const name = 'oidc-provider'
  const { default: Provider } = (await import(name)) as ProviderModule
  // It prints hints about settings for production.
  jest.spyOn(console, 'info').mockImplementation(() => {})
  jest.spyOn(console, 'warn').mockImplementation(() => {})
  provider.issuer = `http://127.0.0.1:${await listen(server)}`
  const foreignKey = { ...createKey().publicKey.export({ format: 'jwk' }), ...KEY }
  const atProvider = new Provider(provider.issuer, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [`${APP_URL}/app/oidc/callback`],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: () => '/interaction' },
    findAccount: (_ctx: unknown, sub: string) => ({ accountId: sub, claims: () => provider.person }),
    cookies: { keys: ['for-tests-only'] },
    jwks: { keys: [{ ...createKey().privateKey.export({ format: 'jwk' }), ...KEY }] },
  })
  const handle = atProvider.callback()
  const interact = async (req: unknown, res: unknown): Promise<void> => {
    const { params } = await atProvider.interactionDetails(req, res)
    const grant = new atProvider.Grant({ accountId: provider.person.sub, clientId: params.client_id })
    grant.addOIDCScope('openid email profile')
    const result = { login: { accountId: provider.person.sub }, consent: { grantId: await grant.save() } }
    await atProvider.interactionFinished(req, res, result)
  }
  let metadata: object = {}
  server.on('request', (req, res) => {
    if (req.url?.startsWith('/interaction')) void interact(req, res)
    else if (req.url === '/jwks' && provider.hasForeignKey) res.end(JSON.stringify({ keys: [foreignKey] }))
    else if (req.url === '/token' && provider.hasMoved) res.writeHead(404).end()
    else if (req.url === METADATA && provider.hasMoved) {
      const moved = { ...metadata, token_endpoint: `${provider.issuer}/moved` }
      res.setHeader('content-type', 'application/json').end(JSON.stringify(moved))
    } else if (req.url === '/moved') {
      req.url = '/token'
      handle(req, res)
    } else handle(req, res)
  })
  metadata = (await (await fetch(`${provider.issuer}${METADATA}`)).json()) as object
})
afterAll(() => close(server))
beforeEach(() => void Object.assign(provider, { person: GRACE, hasMoved: false }))

const app = useTestApp(() => ({
  OIDC_ISSUER: provider.issuer,
  OIDC_CLIENT_ID: CLIENT.id,
  OIDC_CLIENT_SECRET: CLIENT.secret,
}))

/** A browser's cookies, by host. */
type Cookies = Map<string, string>

async function visit(url: string, cookies: Cookies): Promise<string> {
  const header = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const response = await fetch(url, { redirect: 'manual', headers: { cookie: header } })
  for (const line of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
    cookies.set(name!, value!)
  }
  const location = response.headers.get('location')
  if (location === null) throw new Error(`${url} answered ${response.status} ${await response.text()}`)
  return new URL(location, url).href
}

/** Goes to the provider and returns the address of the callback. */
async function goToProvider(cookies: Cookies, next = ''): Promise<string> {
  const atProvider: Cookies = new Map()
  let url = await visit(`${app.url}/app/oidc/start${next}`, cookies)
  while (!url.startsWith(APP_URL)) url = await visit(url, atProvider)
  return url.replace(APP_URL, app.url)
}

/** Signs in as the provider's person; returns where that leads and the session's token. */
async function signIn(next = ''): Promise<{ location: string; token: string }> {
  const cookies: Cookies = new Map()
  const location = await visit(await goToProvider(cookies, next), cookies)
  return { location: location.replace(app.url, ''), token: cookies.get('__Host-session') ?? '' }
}

async function invite(email: string, { admin } = app.organization): Promise<{ id: string; token: string }> {
  const id = newId()
  const body = { id, email, first_name: 'Grace', last_name: '', role: 'member' }
  await app.call(admin, 'createUser', { body })
  const params = { user_id: id }
  const link = await app.call(admin, 'createUserLink', { params, body: { kind: 'invitation' } })
  return { id, token: link.body.url?.split('#')[1] ?? '' }
}

function keptAttempts(cookies: Cookies): Record<string, unknown> {
  return JSON.parse(Buffer.from(cookies.get('__Host-oidc')!, 'base64url').toString()) as Record<string, unknown>
}

describe('Sign-in with OpenID Connect', () => {
  test('accepts the open invitation of a verified address, and later finds the account by issuer and subject', async () => {
    const { id } = await invite('Grace@acme.test')
    provider.person = { ...GRACE, name: 'Grace Hopper' }
    const { location, token } = await signIn('?next=/runs%3Fstatus%3Dfailed')
    expect(location).toBe('/runs?status=failed')
    const { body } = await app.call(token, 'getMe')
    expect(body).toMatchObject({ user_id: id, account: { name: 'Grace Hopper', has_password: false, has_oidc: true } })

    provider.person = { sub: 'grace', email: 'other@acme.test', email_verified: false }
    const again = await signIn()
    expect((await app.call(again.token, 'getMe')).body.user_id).toBe(id)

    // The first by name is another one than that in which the person worked last.
    const { owner } = await app.createOrganization('Aardvark')
    await app.db.pool.query('UPDATE users SET account_id = $2 WHERE id = $1', [owner.userId, body.account.id])
    expect((await app.call((await signIn()).token, 'getMe')).body.user_id).toBe(id)
  })

  test('accepts an invitation whose address, which is the name without another one, is longer than a name', async () => {
    const email = `${'long'.repeat(60)}@acme.test`
    provider.person = { sub: 'long', email, email_verified: true }
    const id = newId()
    const { admin } = app.organization
    await app.call(admin, 'createUser', { body: { id, email, first_name: '', last_name: '', role: 'member' } })
    await app.call(admin, 'createUserLink', { params: { user_id: id }, body: { kind: 'invitation' } })
    const { body } = await app.call((await signIn()).token, 'getMe')
    expect(body).toMatchObject({ user_id: id, account: { email, name: email.slice(0, 200) } })
  })

  test('keeps of a name from the provider as many characters as a name may have, each of them whole', async () => {
    provider.person = { sub: 'emoji', email: 'emoji@acme.test', email_verified: true, name: `${'a'.repeat(199)}😀😀` }
    await invite(provider.person.email)
    const { body } = await app.call((await signIn()).token, 'getMe')
    expect(body.account.name).toBe(`${'a'.repeat(199)}😀`)
  })

  test('is an event for open pages when it accepts an invitation', async () => {
    const { admin, id } = app.organization
    provider.person = { sub: 'kay', email: 'kay@acme.test', email_verified: true }
    // Behind the events of the invitation.
    await hearNotices(app.db, id, ['sessions'], async () => {
      await invite(provider.person.email)
      await app.call(admin, 'createSession', { body: { id: newId() } })
    })
    await expect(hearNotices(app.db, id, ['users'], () => signIn())).resolves.toBeUndefined()
  })

  test.each([
    ['without an invitation', { sub: 'stranger', email: 'stranger@acme.test', email_verified: true }],
    ['with an address that is not verified', { sub: 'unverified', email: 'weiss@acme.test', email_verified: false }],
    ['with an address that folds to an invited one', { sub: 'weiß', email: 'weiß@acme.test', email_verified: true }],
    ['with a Kelvin sign for a k', { sub: 'kelvin', email: '\u212Aelvin@acme.test', email_verified: true }],
  ])('does not sign in %s', async (_case, person) => {
    await invite('weiss@acme.test')
    await invite('kelvin@acme.test')
    provider.person = person
    expect(await signIn()).toEqual({ location: '/sign-in?error=oidc_not_invited', token: '' })
  })

  test('never finds an account by its email address alone', async () => {
    const { email } = app.organization.member
    await invite(email, await app.createOrganization())
    provider.person = { sub: 'imitator', email, email_verified: true }
    expect((await signIn()).token).toBe('')
  })

  test.each(['state', 'nonce', 'verifier'])(
    'refuses an answer when the %s is that of another attempt',
    async (field) => {
      const [cookies, others]: [Cookies, Cookies] = [new Map(), new Map()]
      const answer = await goToProvider(cookies)
      await goToProvider(others)
      const mixed = JSON.stringify({ ...keptAttempts(cookies), [field]: keptAttempts(others)[field] })
      const jar: Cookies = new Map([['__Host-oidc', Buffer.from(mixed).toString('base64url')]])
      expect(await visit(answer, jar)).toBe(`${app.url}/sign-in?error=oidc_failed`)
      expect(jar.get('__Host-session')).toBeUndefined()
    },
  )

  test('finds the provider at the addresses of its metadata as they are after a sign-in that failed', async () => {
    await invite(GRACE.email)
    expect((await signIn()).location).toBe('/')
    provider.hasMoved = true
    expect((await signIn()).location).toBe('/sign-in?error=oidc_failed')
    expect((await signIn()).location).toBe('/')
  })

  test('refuses a token that another key has signed', async () => {
    // The first process remembers the provider's key.
    const other = await app.startAnother()
    const signInThere = async () => {
      const cookies: Cookies = new Map()
      const answer = await goToProvider(cookies)
      return await visit(answer.replace(app.url, other.url), cookies)
    }
    provider.hasForeignKey = true
    expect(await signInThere()).toBe(`${other.url}/sign-in?error=oidc_failed`)
    provider.hasForeignKey = false
    expect(await signIn()).toMatchObject({ location: '/', token: expect.stringMatching(/./) })
    await other.stop()
  })

  test('refuses an answer of another issuer, and one to another browser', async () => {
    const cookies: Cookies = new Map()
    const answer = await goToProvider(cookies)
    const forged = new URL(answer)
    forged.searchParams.set('iss', 'https://attacker.example')
    const failed = `${app.url}/sign-in?error=oidc_failed`
    expect(await visit(forged.href, cookies)).toBe(failed)
    expect(await visit(answer, new Map())).toBe(failed)
  })

  test('works in two tabs at once, and keeps the page that was wanted when it is cancelled at the provider', async () => {
    const cookies: Cookies = new Map()
    const answers = []
    // More than a cookie can have.
    for (const n of [1, 2, 3, 4, 5, 6])
      answers.push(await goToProvider(cookies, `?next=%2Fruns%3Fn%3D${n}${'n'.repeat(700)}`))
    expect(cookies.get('__Host-oidc')!.length).toBeLessThan(4_000)
    const cancelled = new URL(answers.pop()!)
    const values = { error: 'access_denied', state: cancelled.searchParams.get('state')!, iss: provider.issuer }
    cancelled.search = new URLSearchParams(values).toString()
    expect(await visit(cancelled.href, cookies)).toContain('/sign-in?error=oidc_failed&next=%2Fruns%3Fn%3D6')
    expect(await visit(answers.pop()!, cookies)).toContain(`${app.url}/runs?n=5`)
    expect(await visit(answers.pop()!, cookies)).toContain(`${app.url}/runs?n=4`)
    expect((await app.call(cookies.get('__Host-session')!, 'getMe')).status).toBe(200)
    const tooLong = await goToProvider(cookies, `?next=%2F${'n'.repeat(3_900)}`)
    expect(await visit(tooLong, cookies)).toBe(`${app.url}/`)
  })

  test('begins or ends at an application of 1.0.0, which keeps one attempt', async () => {
    const cookies: Cookies = new Map()
    await goToProvider(cookies)
    const answer = await goToProvider(cookies, '?next=%2Fruns')
    const { others, ...kept } = keptAttempts(cookies)
    expect(kept).toEqual({
      state: new URL(answer).searchParams.get('state'),
      nonce: expect.any(String),
      verifier: expect.any(String),
      next: '/runs',
    })
    expect(others).toHaveLength(1)
    cookies.set('__Host-oidc', Buffer.from(JSON.stringify(kept)).toString('base64url'))
    expect(await visit(answer, cookies)).toBe(`${app.url}/runs`)
  })

  test('is enough to accept the invitation of its address to another organization, soon after it', async () => {
    const { token } = await signIn()
    const other = await app.createOrganization()
    const link = await invite('GRACE@acme.test', other)
    const accept = (caller: Caller, { token: linkToken } = link) =>
      app.call(caller, 'acceptLink', { body: { token: linkToken } })
    const missing = { details: [{ field: 'password', code: 'missing' }] }
    expect((await accept(null)).error).toMatchObject(missing)
    expect((await accept('member')).error).toMatchObject(missing)
    expect((await accept(token, await invite('ida@acme.test', other))).error).toMatchObject(missing)
    const makeOld = "UPDATE sign_ins SET confirmed_at = now() - interval '11 minutes' WHERE token_sha256 = $1"
    await app.db.pool.query(makeOld, [hash('sha256', token, 'buffer')])
    expect((await accept(token)).error.code).toBe('confirmation_required')

    const { account } = (await app.call(token, 'getMe')).body
    const { token: confirmed } = await signIn()
    const { body } = await accept(confirmed)
    expect(body).toMatchObject({ account: { id: account.id, has_password: false }, organization: { id: other.id } })
    expect(body.organizations.map(({ id }) => id)).toContain(app.organization.id)
    expect((await accept(confirmed)).error.code).toBe('link_not_usable')
  })

  test('accepts the invitation of an account without an organization, but not that of the address of another one', async () => {
    provider.person = { sub: 'judy', email: 'judy@acme.test', email_verified: true }
    const { id } = await invite('judy@acme.test')
    const { account } = (await app.call((await signIn()).token, 'getMe')).body
    await app.db.pool.query('UPDATE users SET deactivated_at = now() WHERE id = $1', [id])
    expect((await signIn()).token).toBe('')
    const { email } = app.organization.member
    const other = await app.createOrganization()
    await invite(email, other)
    provider.person = { sub: 'judy', email, email_verified: true }
    expect((await signIn()).token).toBe('')
    provider.person = { sub: 'judy', email: 'judy@acme.test', email_verified: true }
    await invite('judy@acme.test', other)
    const { body } = await app.call((await signIn()).token, 'getMe')
    expect(body).toMatchObject({ account: { id: account.id }, organization: { id: other.id } })
  })

  test('removes the password of an account that it leads to a new organization: an admin of before may know it', async () => {
    const [before, next] = [await app.createOrganization(), await app.createOrganization()]
    const email = 'ruth@acme.test'
    provider.person = { sub: 'ruth', email, email_verified: true }
    const params = { user_id: (await invite(email, before)).id }
    expect((await signIn()).token).not.toBe('')
    const reset = await app.call(before.admin, 'createUserLink', { params, body: { kind: 'reset' } })
    const password = 'what the admin of before knows'
    const body = { token: reset.body.url.split('#')[1]!, password }
    expect((await app.call(null, 'acceptLink', { body })).status).toBe(200)
    await app.db.pool.query('UPDATE users SET deactivated_at = now() WHERE id = $1', [params.user_id])
    await invite(email, next)
    const { token } = await signIn()
    expect((await app.call(null, 'signIn', { body: { email, password } })).error?.code).toBe('sign_in_failed')
    const me = (await app.call(token, 'getMe')).body
    expect(me).toMatchObject({ account: { email, has_password: false }, organization: { id: next.id } })
    const { data } = (await app.call(next.admin, 'listAuditEvents', { query: { target_id: me.account.id } })).body
    const removed = { action: 'account.password_changed', changes: [{ field: 'link', old: null, new: 'invitation' }] }
    expect(data).toContainEqual(expect.objectContaining(removed))
  })

  test('leads only to paths of this host, however they are written', async () => {
    const starts = ['/./', '/a/../', '/../', '/./\\', '/', 'https:/', '/\\', '/\t']
    for (const next of starts.map((start) => `${start}/attacker.example`)) {
      expect([next, localPath(next)]).toEqual([next, '/'])
    }
    expect(localPath('/runs?status=failed')).toBe('/runs?status=failed')
    expect((await signIn('?next=%2F%2Fattacker.example')).location).toBe('/')
  })
})
