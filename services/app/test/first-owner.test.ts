import { describe, expect, test } from '@jest/globals'
import { createSetupLink } from '@workflow-service/database'
import { useTestApp } from './support/test-app.ts'

const PASSWORD = 'orbit-velvet-cactus-41'

describe('The first owner', () => {
  const app = useTestApp()

  test('is warned by the page if the browser keeps no cookie, but needs none to be made', async () => {
    const first = await app.call(null, 'tryCookie')
    expect(first.body).toEqual({ is_kept: false })
    // The attributes for which browsers refuse the cookie of a sign-in.
    expect(first.headers.get('set-cookie')).toBe('__Host-trial=1; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=60')
    const again = await fetch(`${app.url}/app/cookie`, { headers: { cookie: 'other=1; __Host-trial=1' } })
    expect(await again.json()).toEqual({ is_kept: true })
  })

  test('uses a setup link, is signed in, signs out and in again', async () => {
    const token = await createSetupLink(app.db, null)
    const opened = await app.call(null, 'openLink', { body: { token } })
    expect(opened.body).toMatchObject({ kind: 'setup', role: 'owner' })
    const body = {
      token,
      organization_name: 'Globex',
      name: 'Ada Lovelace',
      email: 'Ada@globex.test',
      password: PASSWORD,
    }
    const setUp = await app.call(null, 'setUp', { body })
    expect(setUp.body).toMatchObject({ role: 'owner', organization: { name: 'Globex' } })
    const me = await app.call(setUp.cookie!, 'getMe')
    expect(me.body.account).toMatchObject({ name: 'Ada Lovelace', has_password: true })
    const out = await app.call(setUp.cookie!, 'signOut')
    expect(out.cookie).toBe('')
    expect((await app.call(setUp.cookie!, 'getMe')).error.code).toBe('unauthorized')
    const signedIn = await app.call(null, 'signIn', { body: { email: ' ada@GLOBEX.test', password: PASSWORD } })
    expect(signedIn.status).toBe(200)
    expect(signedIn.headers.get('set-cookie')).toMatch(
      /^__Host-session=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=2592000$/,
    )
    const log = await app.call(signedIn.cookie!, 'listAuditEvents')
    expect(log.body.data.map(({ action }) => action)).toEqual([
      'account.signed_in',
      'account.signed_out',
      'account.signed_in',
      'setup.completed',
      'organization.created',
    ])
  })
})
