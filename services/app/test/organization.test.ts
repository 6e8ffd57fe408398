import { describe, expect, test } from '@jest/globals'
import {
  createSetupLink,
  deleteEndedSignIns,
  deleteOrganizationRows,
  findOneTimeLink,
  issueApiKey,
  listOrganizations,
} from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { useDataApp } from './support/data-fixtures.ts'
import { useTestApp } from './support/test-app.ts'

describe('The setup', () => {
  const app = useTestApp()

  test('is announced once in the log while no account exists, with a link that works', async () => {
    await app.db.pool.query('DELETE FROM accounts')
    const before = app.logLines.length
    const restarted = await app.startAnother()
    const line = await waitUntil(() => app.logLines.slice(before).find((each) => 'setup_url' in each))
    const [base, token] = String(line?.['setup_url']).split('#')
    expect(base).toBe('http://localhost:8083/setup')
    // The only organization: the one that the test began with.
    expect(await findOneTimeLink(app.db, token!)).toMatchObject({ kind: 'setup', organizationName: 'Acme' })
    expect((await app.call(null, 'getSetup')).body).toEqual({ needs_setup: true, has_oidc: false })

    const body = {
      token,
      organization_name: 'Ignored',
      name: 'Ada',
      email: 'ada@acme.test',
      password: 'orbit-velvet-41x',
    }
    const setUp = await app.call(null, 'setUp', { body })
    expect(setUp.body.organization).toMatchObject({ id: app.organization.id, name: 'Acme' })
    expect((await app.call(null, 'getSetup')).body.needs_setup).toBe(false)
    await restarted.stop()
    const count = app.logLines.length
    const later = await app.startAnother()
    await later.stop()
    expect(app.logLines.slice(count).filter((each) => 'setup_url' in each)).toEqual([])
  })

  test('of a new organization ends the other links for one', async () => {
    const [first, second] = [await createSetupLink(app.db, null), await createSetupLink(app.db, null)]
    const body = { organization_name: 'Globex', name: 'Bo', email: 'bo@globex.test', password: 'orbit-velvet-41x' }
    const answers = await Promise.all(
      [first, first, second].map((token) => app.call(null, 'setUp', { body: { ...body, token } })),
    )
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(await findOneTimeLink(app.db, first)).toBeUndefined()
    expect(await findOneTimeLink(app.db, second)).toBeUndefined()
  })
})

describe('An organization', () => {
  const data = useDataApp()

  test('is renamed, unless another person has renamed it', async () => {
    const { app } = data
    const { admin } = await app.createOrganization()
    const { version } = (await app.call(admin, 'getOrganization')).body
    expect((await app.call(admin, 'saveOrganization', { body: { name: 'One', version } })).body.name).toBe('One')
    const { error } = await app.call(admin, 'saveOrganization', { body: { name: 'Two', version } })
    expect(error).toMatchObject({ code: 'changed_meanwhile', current: { name: 'One' } })
  })

  test('is deleted with everything it has, in small batches, and hidden at once', async () => {
    const { app } = data
    const { pool } = app.db
    const organization = await app.createOrganization()
    const { id, owner, member, name } = organization
    const other = await app.createOrganization()
    const workflowId = await data.createWorkflow('Orders', null, id)
    for (let count = 0; count < 3; count += 1) await data.createRun(workflowId)
    await data.saveSource({}, organization)
    await issueApiKey(app.db, id, { name: 'ci', scopes: ['read'], expiresAt: null })
    // A person of both organizations keeps the account.
    await pool.query('UPDATE users SET account_id = $2 WHERE id = $1', [other.member.userId, member.accountId])

    const wrong = await app.call(owner, 'deleteOrganization', { body: { name: `${name}!` } })
    expect(wrong.error.details).toMatchObject([{ field: 'name' }])
    expect((await app.call(owner, 'deleteOrganization', { body: { name } })).status).toBe(204)
    expect((await app.call(organization.admin, 'getMe')).error.code).toBe('unauthorized')
    const listed = await listOrganizations(app.db, { limit: 100 })
    expect(listed.map((each) => each.id)).not.toContain(id)
    const { rows: keys } = await pool.query('SELECT FROM api_keys WHERE organization_id = $1 AND revoked_at IS NULL', [
      id,
    ])
    expect(keys).toEqual([])

    while (await deleteOrganizationRows(app.db));
    const tables = [
      'users',
      'workflows',
      'sessions',
      'starts',
      'webhook_sources',
      'deliveries',
      'audit_events',
      'sign_ins',
    ]
    for (const table of [...tables, 'one_time_links', 'usage_hours']) {
      const { rowCount } = await pool.query(`SELECT FROM ${table} WHERE organization_id = $1`, [id])
      expect([table, rowCount]).toEqual([table, 0])
    }
    const { rows: accounts } = await pool.query<{ id: string }>('SELECT id FROM accounts WHERE id = ANY ($1)', [
      [owner.accountId, member.accountId],
    ])
    expect(accounts).toEqual([{ id: member.accountId }])
    const { rows } = await pool.query(
      `SELECT FROM audit_events WHERE action = 'organization.deleted' AND target_id = $1`,
      [id],
    )
    expect(rows).toHaveLength(1)
    expect((await app.call(other.owner, 'getMe')).status).toBe(200)
  })

  test('loses sign-ins and links that ended', async () => {
    const { app } = data
    const { member } = await app.createOrganization()
    await app.db.pool.query(`UPDATE sign_ins SET expires_at = now() - interval '1 second' WHERE account_id = $1`, [
      member.accountId,
    ])
    await deleteEndedSignIns(app.db, 100)
    const { rowCount } = await app.db.pool.query('SELECT FROM sign_ins WHERE account_id = $1', [member.accountId])
    expect(rowCount).toBe(0)
  })
})
