import { expect, test } from '@jest/globals'
import { hashApiKey, newId } from '@workflow-service/database'
import { useTestApp } from './support/test-app.ts'

const app = useTestApp()
const VALUES = { scopes: ['read'], expires_at: null }
const keyIn = (change: object = {}) => ({ id: newId(), name: `Key ${newId()}`, ...VALUES, ...change })

test('A key is shown once, stored as a hash, listed, and revoked, with audit events that do not contain it', async () => {
  const { admin } = app.organization
  const body = keyIn({ name: 'CI', scopes: ['read', 'start', 'start'], expires_at: '2099-01-01T00:00:00.000Z' })
  expect((await app.call(admin, 'createApiKey', { body })).status).toBe(422)
  body.scopes = ['read', 'start']
  const created = await app.call(admin, 'createApiKey', { body })
  expect(created).toMatchObject({
    status: 201,
    body: { id: body.id, name: 'CI', created_by: { id: admin.userId, name: 'The admin' }, expires_at: body.expires_at },
  })
  const { key, ...shown } = created.body
  expect(key?.startsWith(`${shown.prefix}_`)).toBe(true)
  expect((await app.call(admin, 'createApiKey', { body })).body).toEqual({ ...shown, key: null })
  expect((await app.call(admin, 'listApiKeys')).body.data).toEqual([shown])
  const { rows } = await app.db.pool.query<{ key_sha256: Buffer }>('SELECT key_sha256 FROM api_keys')
  expect(rows).toEqual([{ key_sha256: hashApiKey(key ?? '') }])
  const params = { api_key_id: body.id }
  expect((await app.call(admin, 'revokeApiKey', { params })).status).toBe(204)
  expect((await app.call(admin, 'revokeApiKey', { params })).status).toBe(204)
  expect((await app.call(admin, 'listApiKeys')).body.data[0]?.revoked_at).not.toBeNull()
  const events = await app.auditOf(body.id)
  expect(events).toMatchObject([{ action: 'api_key.created' }, { action: 'api_key.revoked' }])
  expect(JSON.stringify(events)).not.toContain(key)
})

test('A key is refused with a name that is taken, an expiry in the past, or an id that is used', async () => {
  const { admin } = app.organization
  const body = keyIn()
  await app.call(admin, 'createApiKey', { body })
  const refused = async (change: object, who = admin) =>
    (await app.call(who, 'createApiKey', { body: keyIn(change) })).error
  expect((await refused({ name: body.name })).code).toBe('name_taken')
  expect((await refused({ id: body.id })).code).toBe('id_taken')
  expect((await refused({ expires_at: '2020-01-01T00:00:00Z' })).details).toMatchObject([{ field: 'expires_at' }])
  const other = await app.createOrganization()
  expect((await refused({ id: body.id }, other.admin)).code).toBe('id_taken')
  const params = { api_key_id: body.id }
  expect((await app.call(other.admin, 'revokeApiKey', { params })).status).toBe(404)
})

test('Keys are listed a page after the other, newest first', async () => {
  const { owner } = await app.createOrganization()
  const ids: string[] = []
  for (let count = 0; count < 3; count += 1) {
    const body = keyIn()
    await app.call(owner, 'createApiKey', { body })
    ids.unshift(body.id)
  }
  expect(await app.listAll(owner, 'listApiKeys', 'id')).toEqual(ids)
})
