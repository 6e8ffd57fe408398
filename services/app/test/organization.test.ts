import { describe, expect, test } from '@jest/globals'
import {
  createOrganization,
  createSetupLink,
  deleteEndedSignIns,
  deleteOrganization,
  deleteOrganizationRows,
  findOneTimeLink,
  findPrincipals,
  hashApiKey,
  issueApiKey,
  listApiKeys,
  listOrganizations,
  newId,
  operatorOf,
  prefixOfApiKey,
  recordModelLimit,
  reserveModelSlot,
  revokeApiKey,
  searchEverything,
} from '@workflow-service/database'
import { applyManifests, toManifest } from '@workflow-service/database/manifest'
import { beginTransaction, hearNotices, untilLocked, waitUntil } from '@workflow-service/testkit'
import { keyIn, sourceIn, useDataApp } from './support/use-app.ts'

// Without the task that announces the setup: the test does.
const data = useDataApp({ hasMaintenance: false })
const { app } = data

const SET_UP = { organization_name: 'Ignored', name: 'Ada', email: 'ada@acme.test', password: 'orbit-velvet-41x' }

describe('The setup', () => {
  test('is announced in the log while no account exists, with the command that makes the link and without a link', async () => {
    const announcements = () => app.logLines.filter(({ hint }) => String(hint).includes('wf setup-link'))
    await app.db.pool.query('DELETE FROM accounts')
    const restarted = await app.startAnother()
    await waitUntil(() => announcements().length > 0)
    await restarted.stop()
    expect(JSON.stringify(app.logLines)).not.toContain('setup#')
    expect(await app.db.prisma.oneTimeLink.count()).toBe(0)
    expect((await app.call(null, 'getSetup')).body).toEqual({ needs_setup: true, has_oidc: false })

    const token = await createSetupLink(app.db, app.organization.id)
    const setUp = await app.call(null, 'setUp', { body: { ...SET_UP, token } })
    expect(setUp.body.organization).toMatchObject({ id: app.organization.id, name: 'Acme' })
    expect((await app.call(null, 'getSetup')).body.needs_setup).toBe(false)
    const later = await app.startAnother()
    await later.stop()
    expect(announcements()).toHaveLength(1)
  })

  test('is warned about by the page if the browser keeps no cookie, but needs none', async () => {
    const first = await app.call(null, 'tryCookie')
    expect(first.body).toEqual({ is_kept: false })
    // The attributes for which browsers refuse the cookie of a sign-in.
    expect(first.headers.get('set-cookie')).toBe('__Host-trial=1; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=60')
    const again = await fetch(`${app.url}/app/cookie`, { headers: { cookie: 'other=1; __Host-trial=1' } })
    expect(await again.json()).toEqual({ is_kept: true })
  })

  test('signs the first owner in, who signs out and in again', async () => {
    const token = await createSetupLink(app.db, null)
    const opened = await app.call(null, 'openLink', { body: { token } })
    expect(opened.body).toMatchObject({ kind: 'setup', role: 'owner' })
    const body = { ...SET_UP, organization_name: 'Globex', name: 'Ada Lovelace', email: 'Ada@globex.test' }
    const setUp = await app.call(null, 'setUp', { body: { ...body, token } })
    expect(setUp.body).toMatchObject({ role: 'owner', organization: { name: 'Globex' } })
    const me = await app.call(setUp.cookie!, 'getMe')
    expect(me.body.account).toMatchObject({ name: 'Ada Lovelace', has_password: true })
    const out = await app.call(setUp.cookie!, 'signOut')
    expect(out.cookie).toBe('')
    expect((await app.call(setUp.cookie!, 'getMe')).error.code).toBe('unauthorized')
    const signedIn = await app.call(null, 'signIn', { body: { email: ' ada@GLOBEX.test', password: SET_UP.password } })
    expect(signedIn.status).toBe(200)
    expect(signedIn.headers.get('set-cookie')).toMatch(
      /^__Host-session=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=2592000$/,
    )
    const log = await app.call(signedIn.cookie!, 'listAuditEvents')
    const first = ['organization.created', 'setup.completed', 'account.signed_in']
    const actions = log.body.data.map(({ action }) => action).toReversed()
    expect(actions).toEqual([...first, 'account.signed_out', 'account.signed_in'])
  })

  test('ends the earlier links of its organization, and those for a new one', async () => {
    const { id } = await app.createOrganization()
    const other = await app.createOrganization()
    const [stale, othersLink] = [await createSetupLink(app.db, null), await createSetupLink(app.db, other.id)]
    const replaced = await createSetupLink(app.db, id)
    const token = await createSetupLink(app.db, id)
    const usable = async () => {
      const links = await Promise.all([stale, othersLink, replaced, token].map((each) => findOneTimeLink(app.db, each)))
      return links.map((link) => link !== undefined)
    }
    expect(await usable()).toEqual([true, true, false, true])
    const body = { ...SET_UP, email: 'cy@acme.test', token }
    expect((await app.call(null, 'setUp', { body })).status).toBe(201)
    expect(await usable()).toEqual([false, true, false, false])
  })

  test('is an event for open pages', async () => {
    const { id } = await app.createOrganization()
    const body = { ...SET_UP, email: 'dan@acme.test', token: await createSetupLink(app.db, id) }
    const heard = hearNotices(app.db, id, ['users'], () => app.call(null, 'setUp', { body }))
    await expect(heard).resolves.toBeUndefined()
  })

  test('keeps the newest link of several that are made at once', async () => {
    const { id } = await app.createOrganization()
    for (const organizationId of [id, null]) {
      const tokens = await Promise.all(Array.from({ length: 5 }, () => createSetupLink(app.db, organizationId)))
      const links = await Promise.all(tokens.map((token) => findOneTimeLink(app.db, token)))
      expect(links.filter((link) => link !== undefined)).toHaveLength(1)
    }
  })

  test('makes the user of that address an owner, also if it differs in case, and never one with another account', async () => {
    const { id, member } = await app.createOrganization()
    const dee = await app.db.prisma.user.create({ data: { organizationId: id, id: newId(), email: 'Dee@Acme.test' } })
    const setUp = (email: string, token: string) => app.call(null, 'setUp', { body: { ...SET_UP, email, token } })
    const done = await setUp('dee@acme.test', await createSetupLink(app.db, id))
    expect(done.body).toMatchObject({ user_id: dee.id, role: 'owner' })
    // The organization's address of the member is one without an account.
    await app.db.prisma.user.update({ where: { id: member.userId }, data: { email: 'eve@acme.test' } })
    const again = await createSetupLink(app.db, id)
    expect((await setUp('eve@acme.test', again)).error.code).toBe('email_taken')
    expect(await findOneTimeLink(app.db, again)).toBeDefined()
  })

  test('of a new organization happens once for several requests at once', async () => {
    const token = await createSetupLink(app.db, null)
    const body = { ...SET_UP, organization_name: 'Globex', email: 'bo@globex.test', token }
    const responses = await Promise.all([1, 2].map(() => app.call(null, 'setUp', { body })))
    expect(responses.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(await findOneTimeLink(app.db, token)).toBeUndefined()
  })
})

describe('An organization', () => {
  test('is renamed, unless another person has renamed it', async () => {
    const { admin } = await app.createOrganization()
    const { version } = (await app.call(admin, 'getOrganization')).body
    expect((await app.call(admin, 'saveOrganization', { body: { name: 'One', version } })).body.name).toBe('One')
    const { error } = await app.call(admin, 'saveOrganization', { body: { name: 'Two', version } })
    expect(error).toMatchObject({ code: 'changed_meanwhile', current: { name: 'One' } })
  })

  test.each([
    ['key', `SELECT pg_advisory_xact_lock(hashtextextended('quotas of ' || $1, 0))`],
    ['budget', 'SELECT FROM organizations WHERE id = $1 FOR UPDATE'],
    ['instructions', 'SELECT FROM organizations WHERE id = $1 FOR UPDATE'],
    ['approval', 'SELECT FROM webhook_sources WHERE organization_id = $1 FOR UPDATE'],
    ['notices', 'SELECT FROM notice_webhooks WHERE organization_id = $1 FOR UPDATE'],
    ['hidden workflow', 'SELECT FROM workflows WHERE organization_id = $1 FOR UPDATE'],
    ['removed source', 'SELECT FROM webhook_sources WHERE organization_id = $1 FOR UPDATE'],
    ['end', 'SELECT FROM organizations WHERE id = $1 FOR UPDATE'],
  ] as const)(
    'has no %s of a person whose role was taken away while the change waited for a lock',
    async (changed, lock) => {
      const organization = await app.createOrganization()
      const { id, owner } = organization
      const { url } = data.endpoint
      const params = { source_id: await data.saveSource({ approval: 'always' }, organization) }
      const source = (await data.call(owner, 'getWebhookSource', { params })).body
      await data.call(owner, 'saveNoticeWebhook', { body: { url } })
      const { name, version } = (await data.call(owner, 'getOrganization')).body
      const workflowId = await data.createWorkflow('Offers', [owner.userId], id)
      const before = await app.createPerson(id, changed === 'end' ? 'owner' : 'admin')
      const save = {
        key: () => data.call(before, 'createApiKey', { body: keyIn() }),
        budget: () => data.call(before, 'saveOrganization', { body: { name, month_budget: 1, version } }),
        instructions: () => data.call(before, 'saveInstructions', { body: { text: 'Be brief.', version: '0' } }),
        approval: () => {
          const body = { approval: 'none', version: source.version } as const
          return data.call(before, 'saveWebhookSourceSettings', { params, body })
        },
        notices: () => data.call(before, 'saveNoticeWebhook', { body: { url: `${url}/other` } }),
        'hidden workflow': () =>
          data.call(before, 'setWorkflowActive', { params: { workflow_id: workflowId }, body: { is_active: false } }),
        'removed source': () => data.call(before, 'deleteWebhookSource', { params }),
        end: () => data.call(before, 'deleteOrganization', { body: { name } }),
      }[changed]
      using other = await beginTransaction(app.db.pool)
      await other.query(lock, [id])
      const saving = save()
      await untilLocked(app.db.pool)
      await other.query(`UPDATE users SET role = 'member' WHERE id = $1`, [before.userId])
      await other.query('COMMIT')
      expect((await saving).error?.code).toBe('forbidden_for_role')
      const text = 'SELECT action FROM audit_events WHERE organization_id = $1 AND actor_id = $2'
      const { rows } = await app.db.pool.query(text, [id, before.userId])
      expect(rows).toEqual([{ action: 'access.refused' }])
    },
  )

  test('has instructions in versions, which admins save, all compare, and a new version restores', async () => {
    const { id, admin, member } = await app.createOrganization()
    const save = async (text: string, version: string) =>
      await app.call(admin, 'saveInstructions', { body: { text, version } })
    expect((await app.call(member, 'getInstructions')).body).toMatchObject({ text: '', version: '0', versions: [] })
    expect((await save(' Be brief. ', '0')).body).toMatchObject({ text: 'Be brief.', version: '1' })
    // Repeated, such as after a lost response.
    expect((await save('Be brief.', '0')).body.version).toBe('1')
    expect((await save('Be long.', '0')).error).toMatchObject({
      code: 'changed_meanwhile',
      current: { text: 'Be brief.' },
    })
    expect((await save('x'.repeat(8_001), '1')).error.details).toMatchObject([{ field: 'text' }])
    await save('', '1')
    const { body } = await save('Be brief.', '2')
    const saved = [
      { number: 3, text: 'Be brief.' },
      { number: 2, text: '' },
      { number: 1, text: 'Be brief.' },
    ]
    expect(body.versions).toMatchObject(saved.map((version) => ({ ...version, saved_by: 'The admin' })))
    expect(body.system_text).toContain('Be brief.')
    const events = await app.auditOf(id)
    expect(events.filter(({ action }) => action === 'instructions.saved')).toHaveLength(3)
    await app.db.pool.query('UPDATE instructions SET number = 60 WHERE organization_id = $1 AND number = 3', [id])
    const kept = (await save('New.', '60')).body.versions
    expect(kept.map(({ number }) => number)).toEqual([61, 60])
  })

  test('is deleted with everything it has, in small batches, and hidden at once', async () => {
    const { pool } = app.db
    const organization = await app.createOrganization()
    const { id, owner, member, name } = organization
    const other = await app.createOrganization()
    const workflowId = await data.createWorkflow('Orders', null, id)
    for (let count = 0; count < 3; count += 1) await data.createRun(workflowId)
    await data.saveSource({}, organization)
    // Of a source that was never saved, because its endpoint did not confirm.
    const unsaved = { params: { source_id: newId() }, body: sourceIn({ endpoint_url: 'http://127.0.0.1:9/' }) }
    expect((await data.call(owner, 'saveWebhookSource', unsaved)).status).toBe(422)
    const { apiKey } = await issueApiKey(app.db, { name: 'ci', scopes: ['read'], expiresAt: null }, operatorOf(id))
    // A person of both organizations keeps the account.
    await pool.query('UPDATE users SET account_id = $2 WHERE id = $1', [other.member.userId, member.accountId])
    const enter = (organization_id: string) => app.call(member, 'switchOrganization', { body: { organization_id } })
    expect((await enter(other.id)).status).toBe(200)

    const wrong = await app.call(owner, 'deleteOrganization', { body: { name: `${name}!` } })
    expect(wrong.error.details).toMatchObject([{ field: 'name' }])
    expect((await app.call(owner, 'deleteOrganization', { body: { name } })).status).toBe(204)
    expect((await app.call(organization.admin, 'getMe')).error.code).toBe('unauthorized')
    expect((await enter(id)).status).toBe(404)
    expect((await app.call(member, 'getMe')).body.organizations).toMatchObject([{ id: other.id }])
    const listed = await listOrganizations(app.db, { limit: 100 })
    expect(listed.map((each) => each.id)).not.toContain(id)
    expect(await app.db.prisma.apiKey.count({ where: { organizationId: id, revokedAt: null } })).toBe(0)

    await pool.query("INSERT INTO idempotency_keys VALUES ($1, 'k', $2, $1, $1)", [apiKey.id, Buffer.alloc(32)])
    await recordModelLimit(app.db, id, 60_000)
    await reserveModelSlot(app.db, id, { organizationId: id, maxDelayMs: 0, isRepeated: false })
    expect((await pool.query('SELECT FROM model_waits WHERE organization_id = $1', [id])).rowCount).toBe(1)
    while (await deleteOrganizationRows(app.db));
    expect(await pool.query('SELECT FROM idempotency_keys WHERE api_key_id = $1', [apiKey.id])).toMatchObject({
      rowCount: 0,
    })
    const tables = ['users', 'workflows', 'sessions', 'starts', 'webhook_sources', 'deliveries', 'audit_events']
    for (const table of [...tables, 'sign_ins', 'one_time_links', 'usage_hours', 'model_waits']) {
      const { rowCount } = await pool.query(`SELECT FROM ${table} WHERE organization_id = $1`, [id])
      expect([table, rowCount]).toEqual([table, 0])
    }
    expect(await app.db.prisma.apiKey.findMany({ where: { organizationId: id } })).toMatchObject([{ name: apiKey.id }])
    const where = { id: { in: [owner.accountId, member.accountId] } }
    expect(await app.db.prisma.account.findMany({ where })).toMatchObject([{ id: member.accountId }])
    const events = await app.auditOf(id)
    expect(events.filter(({ action }) => action === 'organization.deleted')).toHaveLength(1)
    expect((await app.call(other.owner, 'getMe')).status).toBe(200)
  })

  test('leaves nothing behind that another transaction has locked for a moment while it is deleted', async () => {
    const { pool } = app.db
    const organization = await app.createOrganization()
    const { id, owner, name } = organization
    const sourceId = await data.saveSource({}, organization)
    const runId = await data.createRun(await data.createWorkflow('Orders', null, id))
    await data.addDelivery(sourceId, { runId })
    expect((await app.call(owner, 'deleteOrganization', { body: { name } })).status).toBe(204)
    const tables = ['deliveries', 'starts', 'workflows', 'webhook_sources']
    for (const table of tables) {
      using other = await beginTransaction(pool)
      await other.query(`SELECT FROM ${table} WHERE organization_id = $1 FOR UPDATE`, [id])
      for (let batch = 0; batch < 8; batch += 1) await deleteOrganizationRows(app.db)
      await other.query('COMMIT')
    }
    while (await deleteOrganizationRows(app.db));
    for (const table of tables) {
      const { rowCount } = await pool.query(`SELECT FROM ${table} WHERE organization_id = $1`, [id])
      expect([table, rowCount]).toEqual([table, 0])
    }
  })

  test('takes no account with it of a person who joins another one at the same moment', async () => {
    const [{ owner, member, name }, other] = [await app.createOrganization(), await app.createOrganization()]
    expect((await app.call(owner, 'deleteOrganization', { body: { name } })).status).toBe(204)
    const { userId } = other.member
    using joining = await beginTransaction(app.db.pool)
    await joining.query('SELECT FROM accounts WHERE id = $1 FOR NO KEY UPDATE', [member.accountId])
    await joining.query('UPDATE users SET account_id = $2 WHERE id = $1', [userId, member.accountId])
    const deleted = (async () => {
      while (await deleteOrganizationRows(app.db));
    })()
    await untilLocked(app.db.pool)
    await joining.query('COMMIT')
    await deleted
    const where = { id: userId }
    expect(await app.db.prisma.user.findUnique({ where })).toMatchObject({ accountId: member.accountId })
    expect(await app.db.prisma.account.count({ where: { id: { in: [owner.accountId, member.accountId] } } })).toBe(1)
  })

  test.each([
    ['wf organizations create', (name: string) => createOrganization(app.db, name)],
    ['a manifest', (name: string) => applyManifests(app.db, [toManifest({ organization: { name } })])],
  ])(
    'of a deleted one, which %s makes anew under its id, begins without its settings and keys',
    async (_case, create) => {
      const name = `Acme ${newId()}`
      const { id } = await createOrganization(app.db, name)
      const settings = { monthBudget: 1n, offeredModels: ['builtin'], createdAt: new Date(0) }
      await app.db.prisma.organization.update({ where: { id }, data: settings })
      const issue = async () =>
        await issueApiKey(app.db, { name: 'ci', scopes: ['read'], expiresAt: null }, operatorOf(id))
      const { apiKey } = await issue()
      await deleteOrganization(app.db, operatorOf(id))
      while (await deleteOrganizationRows(app.db));
      await create(name)
      const created = await app.db.prisma.organization.findUniqueOrThrow({ where: { id } })
      expect(created).toMatchObject({ name, deletedAt: null, monthBudget: null, offeredModels: [] })
      expect(created.createdAt.getTime()).toBeGreaterThan(Date.now() - 60_000)
      expect(await revokeApiKey(app.db, { id: apiKey.id }, operatorOf(id))).toBeUndefined()
      const { id: keyId } = (await issue()).apiKey
      await revokeApiKey(app.db, { id: keyId }, operatorOf(id))
      expect((await listApiKeys(app.db, id)).map((key) => key.id)).toEqual([keyId])
      const viewer = { organizationId: id, memberId: null }
      for (const text of [apiKey.id, apiKey.prefix]) expect(await searchEverything(app.db, viewer, text)).toEqual([])
    },
  )

  test('of a deleted one, made anew, has no key of the old one that was made while it was deleted', async () => {
    const name = `Acme ${newId()}`
    const { id } = await createOrganization(app.db, name)
    await deleteOrganization(app.db, operatorOf(id))
    // The request of an admin that was under way.
    const { key } = await issueApiKey(app.db, { name: 'ci', scopes: ['read'], expiresAt: null }, operatorOf(id))
    while (await deleteOrganizationRows(app.db));
    await createOrganization(app.db, name)
    const found = await findPrincipals(app.db, [prefixOfApiKey(key)!])
    expect(found).toMatchObject([{ organizationId: id, isSuspended: false, isRevoked: true }])
  })

  test('that is made anew while another process deletes the old one stays', async () => {
    const { id, owner, name } = await app.createOrganization()
    expect((await app.call(owner, 'deleteOrganization', { body: { name } })).status).toBe(204)
    using making = await beginTransaction(app.db.pool)
    await making.query('UPDATE organizations SET deleted_at = NULL WHERE id = $1', [id])
    const deleted = (async () => {
      while (await deleteOrganizationRows(app.db));
    })()
    await untilLocked(app.db.pool)
    await making.query('COMMIT')
    await deleted
    const where = { id }
    expect(await app.db.prisma.organization.findUnique({ where })).toMatchObject({ name, purgedAt: null })
    expect(await app.db.prisma.user.count({ where: { id: owner.userId } })).toBe(1)
  })

  test('loses sign-ins and links that ended', async () => {
    const where = { accountId: (await app.createOrganization()).member.accountId }
    await app.db.prisma.signIn.updateMany({ where, data: { expiresAt: new Date(Date.now() - 1_000) } })
    await deleteEndedSignIns(app.db, 100)
    expect(await app.db.prisma.signIn.count({ where })).toBe(0)
  })

  test('has keys, each of which is shown once, stored as a hash, listed, and revoked, with audit events that do not contain it', async () => {
    const { admin } = await app.createOrganization()
    const body = keyIn({ name: 'CI', scopes: ['read', 'start', 'start'], expires_at: '2099-01-01T00:00:00.000Z' })
    expect((await app.call(admin, 'createApiKey', { body })).status).toBe(422)
    body.scopes = ['read', 'start']
    const created = await app.call(admin, 'createApiKey', { body })
    const by = { created_by: { id: admin.userId, name: 'The admin' }, expires_at: body.expires_at }
    expect(created).toMatchObject({ status: 201, body: { id: body.id, name: 'CI', ...by } })
    const { key, ...shown } = created.body
    expect(key?.startsWith(`${shown.prefix}_`)).toBe(true)
    expect((await app.call(admin, 'createApiKey', { body })).body).toEqual({ ...shown, key: null })
    for (const change of [{ scopes: ['read'] }, { expires_at: null }, { name: 'Other' }]) {
      const other = await app.call(admin, 'createApiKey', { body: { ...body, ...change } })
      expect(other.error?.code).toBe('id_taken')
    }
    expect((await app.call(admin, 'listApiKeys')).body.data).toEqual([shown])
    const { rows } = await app.db.pool.query<{ key_sha256: Buffer }>('SELECT key_sha256 FROM api_keys WHERE id = $1', [
      body.id,
    ])
    expect(rows).toEqual([{ key_sha256: hashApiKey(key ?? '') }])
    const params = { api_key_id: body.id }
    expect((await app.call(admin, 'revokeApiKey', { params })).status).toBe(204)
    expect((await app.call(admin, 'revokeApiKey', { params })).status).toBe(204)
    expect((await app.call(admin, 'listApiKeys')).body.data[0]?.revoked_at).not.toBeNull()
    const events = await app.auditOf(body.id)
    expect(events).toMatchObject([{ action: 'api_key.created' }, { action: 'api_key.revoked' }])
    expect(JSON.stringify(events)).not.toContain(key)
  })

  test('has keys in pages, newest first, and none with a taken name, an expiry in the past, or a used id', async () => {
    const { admin } = await app.createOrganization()
    const bodies = [keyIn(), keyIn(), keyIn()]
    for (const body of bodies) await app.call(admin, 'createApiKey', { body })
    const ids = bodies.map(({ id }) => id)
    expect(await app.listAll(admin, 'listApiKeys', 'id')).toEqual(ids.toReversed())
    const body = bodies[0]!
    const refused = async (change: object, who = admin) =>
      (await app.call(who, 'createApiKey', { body: keyIn(change) })).error
    expect((await refused({ name: body.name })).code).toBe('name_taken')
    expect((await refused({ id: body.id })).code).toBe('id_taken')
    expect((await refused({ expires_at: '2020-01-01T00:00:00Z' })).details).toMatchObject([{ field: 'expires_at' }])
    const other = await app.createOrganization()
    expect((await refused({ id: body.id }, other.admin)).code).toBe('id_taken')
  })
})
