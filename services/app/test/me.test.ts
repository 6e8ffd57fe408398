import { expect, test } from '@jest/globals'
import { useTestApp } from './support/test-app.ts'

const app = useTestApp()

test('A person who is signed in reads who that is', async () => {
  const { owner, id } = app.organization
  const { status, body } = await app.call(owner, 'getMe')
  expect(status).toBe(200)
  expect(body).toMatchObject({ role: 'owner', user_id: owner.userId, organization: { id, name: 'Acme' } })
})

test('Without a cookie or with an unknown token, the answer is 401', async () => {
  for (const who of [null, 'unknown']) expect((await app.call(who, 'getMe')).error.code).toBe('unauthorized')
})
