import { describe, expect, test } from '@jest/globals'
import { waitUntil } from '@workflow-service/testkit'
import { useTestGateway } from './support/use-test-gateway.ts'

const gateway = useTestGateway()

describe('200', () => {
  test('answers the id and the name of the organization of the key', async () => {
    const { body } = await gateway.get('/v1/organization')
    expect(body).toEqual({ id: gateway.organization.id, name: 'Acme' })
  })

  test('answers the organization that the key belongs to', async () => {
    const other = await gateway.apply({ organization: { name: 'Umlaut & "Söhne" 🚀' } })
    const { body } = await gateway.get('/v1/organization', { key: other.key })
    expect(body.name).toBe('Umlaut & "Söhne" 🚀')
  })

  test('ignores unknown query parameters, a body and its type', async () => {
    const { status } = await gateway.get('/v1/organization?limit=x&%ff', {
      body: 'no json',
      headers: { 'Content-Type': 'text/plain' },
    })
    expect(status).toBe(200)
  })

  test('answers a new name within seconds', async () => {
    const organization = await gateway.apply({ organization: { name: 'Before' } })
    expect((await gateway.get('/v1/organization', { key: organization.key })).body.name).toBe('Before')
    await gateway.db.pool.query(`UPDATE organizations SET name = 'After' WHERE id = $1`, [organization.id])
    await waitUntil(async () => {
      const { body } = await gateway.get('/v1/organization', { key: organization.key })
      return body.name === 'After'
    })
  })
})
