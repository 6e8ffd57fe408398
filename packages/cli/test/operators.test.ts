import {
  acceptEmail,
  createDatabase,
  createOrganization,
  createUserLink,
  deleteOrganization,
  deleteUser,
  findOneTimeLink,
  hashApiKey,
  newId,
  operatorOf,
  prefixOfApiKey,
  recordAuditEvent,
  recordNotices,
  signIn,
} from '@workflow-service/database'
import { failForOrganization, waitUntil } from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { beforeEach, describe, expect, test } from '@jest/globals'
import { failure, wf as runWf } from './support/wf.ts'

const database = useTestDatabase()

beforeEach(async () => {
  await database.db.pool.query('DELETE FROM organizations')
  await database.db.pool.query('DELETE FROM accounts')
  await database.db.pool.query('DELETE FROM audit_events')
})

const settings = () => ({ DATABASE_URL: database.url, APP_URL: 'https://app.example/', LOCAL_DIR: '/nonexistent' })

const wf = async (...args: string[]) => await runWf(settings(), args)

const apply = async (manifest: object) => await runWf(settings(), ['apply', '-'], { input: JSON.stringify(manifest) })

const json = async (...args: string[]): Promise<unknown> => JSON.parse((await wf(...args, '--json')).stdout)
const create = async (name: string) => await createOrganization(database.db, name)

async function operatorEvents(): Promise<unknown[]> {
  const { rows } = await database.db.pool.query(
    `SELECT action, target_name AS target, changes FROM audit_events WHERE actor_kind = 'operator' ORDER BY id`,
  )
  return rows
}

/** Adds a user of a new person, or of one with this account. */
async function addUser(organizationId: string, email: string, role: string | null, accountId?: string) {
  const person = { id: newId(), email, emailKey: email.toLowerCase(), name: email }
  const { id } = accountId ? { id: accountId } : await database.db.prisma.account.create({ data: person })
  return await database.db.prisma.user.create({ data: { id: newId(), organizationId, email, role, accountId: id } })
}

/** A run that has not ended, of a new workflow in a new session. */
async function createRun(organizationId: string, context: string) {
  const { prisma } = database.db
  const [workflowId, sessionId] = [newId(), newId()]
  const texts = { name: 'W', description: '', scope: 'company_wide', searchText: '' }
  await prisma.workflow.create({ data: { id: workflowId, organizationId, isActive: true, ...texts } })
  await prisma.session.create({ data: { id: sessionId, organizationId } })
  const ids = { organizationId, workflowId, sessionId }
  const run = { id: newId(), ...ids, number: 1, origin: 'api', context, requestId: 'r' }
  await prisma.start.create({ data: { ...run, status: 'running', startedAt: new Date() } })
  return run
}

async function createPrompt(runId: string, prompt: object): Promise<void> {
  const insert = 'INSERT INTO run_prompts (run_id, position, asked_position, prompt) VALUES ($1, 0, 0, $2)'
  await database.db.pool.query(insert, [runId, prompt])
}

describe('wf organizations', () => {
  test('creates an organization with the id that a manifest would give it, and refuses its name again', async () => {
    const created = await wf('organizations', 'create', ' Acme ')
    expect(created).toMatchObject({ exitStatus: 0, stderr: '' })
    expect(created.stdout).toBe(
      'Acme (92c5fadb-f3dd-536f-8c0a-7e2b85c8b9ab) is created. Make the link for its first owner: wf setup-link 92c5fadb-f3dd-536f-8c0a-7e2b85c8b9ab\n',
    )
    const message = 'There is an organization Acme already (92c5fadb-'
    expect(await wf('organizations', 'create', 'Acme')).toMatchObject(failure(message))
    expect(await wf('organizations', 'create', ' ')).toMatchObject({ exitStatus: 2 })
    expect(await operatorEvents()).toEqual([{ action: 'organization.created', target: 'Acme', changes: [] }])
  })

  test('suspends and resumes', async () => {
    const { id } = await create('Acme')
    expect((await wf('organizations', 'suspend', 'Acme')).stdout).toBe('Acme is suspended.\n')
    expect((await wf('organizations', 'suspend', id)).stdout).toBe('Acme is already suspended.\n')
    expect((await wf('organizations', 'list')).stdout).toMatch(
      /^ID +STATE +NAME\n[0-9a-f-]{36} {2}suspended {2}Acme\n$/,
    )
    expect(await json('organizations', 'resume', 'Acme')).toEqual({ id, name: 'Acme', suspended: false })
    expect((await operatorEvents()).slice(1)).toEqual([
      { action: 'organization.saved', target: 'Acme', changes: [{ field: 'suspended', old: false, new: true }] },
      { action: 'organization.saved', target: 'Acme', changes: [{ field: 'suspended', old: true, new: false }] },
    ])
  })

  test('deletes only after a confirmation, with everything in it, and the name can be used again', async () => {
    const { id } = await create('Acme')
    await addUser(id, 'ada@acme.test', 'owner')
    const refused = await wf('organizations', 'delete', 'Acme')
    expect(refused).toMatchObject(failure('Nothing was deleted. Without a terminal, --yes'))
    const mistyped = await runWf(settings(), ['organizations', 'delete', 'Acme'], { ask: async () => 'acme' })
    expect(mistyped).toMatchObject(failure('Error: This is not its name. Nothing was deleted.\n'))
    expect(await json('organizations', 'list')).toHaveLength(1)
    const stdout = `Acme (${id}) is deleted.\n`
    expect(await wf('organizations', 'delete', 'Acme', '--yes')).toMatchObject({ exitStatus: 0, stdout })
    expect(await json('organizations', 'list')).toEqual([])
    expect(await database.db.prisma.user.count()).toBe(0)
    expect(await operatorEvents()).toEqual([{ action: 'organization.deleted', target: 'Acme', changes: [] }])
    expect(await json('organizations', 'create', 'Acme')).toEqual({ id, name: 'Acme', suspended: false })
  })

  test('deletes it also while the rows of another deleted organization cannot be deleted', async () => {
    const [{ id }, other] = [await create('Acme'), await create('Other')]
    for (const each of [id, other.id]) await createRun(each, 'hello')
    await deleteOrganization(database.db, operatorOf(other.id))
    const mend = await failForOrganization(database.db.pool, 'workflows', other.id)
    try {
      const deleted = await wf('organizations', 'delete', 'Acme', '--yes')
      expect(deleted).toMatchObject({ exitStatus: 0, stdout: `Acme (${id}) is deleted.\n` })
      expect(await database.db.prisma.workflow.findMany()).toMatchObject([{ organizationId: other.id }])
    } finally {
      await mend()
    }
  })
})

test('a manifest of a deleted organization is refused while its data is being deleted, and creates it again afterwards', async () => {
  const { id } = await create('Acme')
  const manifest = { organization: { name: 'Acme' } }
  await database.db.pool.query('UPDATE organizations SET deleted_at = now() WHERE id = $1', [id])
  expect(await apply(manifest)).toMatchObject(failure('its data is still being deleted'))
  await database.db.pool.query('UPDATE organizations SET purged_at = now() WHERE id = $1', [id])
  expect(await apply(manifest)).toMatchObject({ exitStatus: 0 })
  expect(await json('organizations', 'list')).toEqual([{ id, name: 'Acme', suspended: false }])
})

describe('wf setup-link', () => {
  test('prints a link under APP_URL, of which only the hash is stored', async () => {
    const { id } = await create('Acme')
    const { url, organization_id } = (await json('setup-link')) as { url: string; organization_id: string }
    expect(url).toMatch(/^https:\/\/app\.example\/setup#[\w-]{43}$/)
    expect(organization_id).toBe(id)
    const token = url.split('#')[1] ?? ''
    expect(await findOneTimeLink(database.db, token)).toMatchObject({ kind: 'setup', organizationId: id })
    const stored = await database.db.prisma.oneTimeLink.findFirstOrThrow()
    expect(Math.round((stored.expiresAt.getTime() - Date.now()) / 3_600_000)).toBe(72)
    expect(JSON.stringify(stored)).not.toContain(token)
    expect((await operatorEvents()).at(-1)).toMatchObject({ action: 'setup.link_created' })
  })

  test('without any organization, makes the link that creates one', async () => {
    const { stdout } = await wf('setup-link')
    expect(stdout).toMatch(
      /^https:\/\/app\.example\/setup#\S{43}\nMakes the person who opens it the owner of a new organization\. Works once, for 72 hours\.\n$/,
    )
    expect(await database.db.prisma.oneTimeLink.findMany()).toMatchObject([{ organizationId: null, role: 'owner' }])
  })

  test('asks for the organization when there are several, and for APP_URL', async () => {
    await create('Acme')
    await create('Other')
    expect(await wf('setup-link')).toMatchObject(failure('several organizations'))
    const withoutUrl = await runWf({ DATABASE_URL: database.url }, ['setup-link', 'Acme'])
    expect(withoutUrl).toMatchObject(failure(/APP_URL is missing\. .*Example: APP_URL=https:/))
  })
})

const setRole = async (user: string, role: string) => await wf('users', 'role', user, role, '--organization', 'Acme')

describe('wf users', () => {
  test('lists users with their roles and states', async () => {
    const { id } = await create('Acme')
    await addUser(id, 'ada@acme.test', 'owner')
    await database.db.prisma.user.create({ data: { id: newId(), organizationId: id, email: 'bob@acme.test' } })
    expect((await wf('users', 'list', 'Acme')).stdout).toMatch(
      /^EMAIL .*\nada@acme\.test {2}owner {2}active .* [0-9a-f-]{36}\nbob@acme\.test {2}none +no_access .*\n$/,
    )
    expect(await json('users', 'list')).toMatchObject([{ role: 'owner', state: 'active' }, { role: null }])
  })

  test('changes a role, which is audited, and keeps the last owner', async () => {
    const { id } = await create('Acme')
    await addUser(id, 'Ada@acme.test', 'owner')
    const bob = await addUser(id, 'bob@acme.test', null)
    expect((await setRole(bob.id, 'admin')).stdout).toBe('bob@acme.test is admin.\n')
    const changes = [{ field: 'role', old: null, new: 'admin' }]
    expect(await operatorEvents()).toContainEqual({ action: 'user.saved', target: 'bob@acme.test', changes })
    const isLast = 'Error: Ada@acme.test is the last owner of Acme. Make another one first: wf setup-link.\n'
    expect(await setRole('ada@ACME.test', 'none')).toMatchObject(failure(isLast))
    await setRole('bob@acme.test', 'owner')
    expect((await setRole('ada@acme.test', 'none')).stdout).toBe('Ada@acme.test has no role and cannot sign in.\n')
    for (const unknown of ['eve@acme.test', newId()]) {
      expect(await setRole(unknown, 'admin')).toMatchObject(failure(`Acme has no user ${unknown}.`))
    }
    expect(await setRole('ada@acme.test', 'king')).toMatchObject({ exitStatus: 2 })
  })

  test('makes a link to set a new password, also for a person of several organizations', async () => {
    const [acme, other] = [await create('Acme'), await create('Other')]
    const { id, accountId } = await addUser(acme.id, 'ada@acme.test', 'owner')
    await addUser(other.id, 'ada@acme.test', 'member', accountId!)
    const printed = await wf('users', 'reset-link', 'ADA@acme.test')
    expect(printed).toMatchObject({ exitStatus: 0, stderr: '' })
    const [, token = ''] =
      /^https:\/\/app\.example\/link#([\w-]{43})\nSets a new password of ada@acme/.exec(printed.stdout) ?? []
    expect(await findOneTimeLink(database.db, token)).toMatchObject({ kind: 'reset', organizationId: acme.id })
    const changes = [{ field: 'kind', old: null, new: 'reset' }]
    expect((await operatorEvents()).at(-1)).toEqual({ action: 'user.link_created', target: 'ada@acme.test', changes })
    const again = (await json('users', 'reset-link', id)) as { url: string }
    expect(await findOneTimeLink(database.db, token)).toBeUndefined()
    expect(await findOneTimeLink(database.db, again.url.split('#')[1] ?? '')).toMatchObject({ kind: 'reset' })
    expect(await wf('users', 'reset-link', 'eve@acme.test')).toMatchObject({ exitStatus: 1 })
  })

  test('makes a link with which a person with a password gets another address', async () => {
    const { id } = await create('Acme')
    await addUser(id, 'ada@acme.test', 'owner')
    await addUser(id, 'bob@acme.test', 'member')
    const withoutPassword = await wf('users', 'email-link', 'ada@acme.test', 'ada@new.test')
    expect(withoutPassword).toMatchObject(failure('has no password'))
    await database.db.pool.query(`UPDATE accounts SET password_hash = 'x'`)
    const { stdout } = await wf('users', 'email-link', 'ada@acme.test', 'ada@new.test')
    expect(stdout).toContain('Gives ada@acme.test the address ada@new.test. Works once, for 72 hours.')
    const [, token = ''] = /link#([\w-]{43})/.exec(stdout) ?? []
    expect(await findOneTimeLink(database.db, token)).toMatchObject({ kind: 'email', newEmail: 'ada@new.test' })
    expect(await wf('users', 'email-link', 'ada@acme.test', 'Bob@acme.test')).toMatchObject(failure('another user'))
    expect(await wf('users', 'email-link', 'ada@acme.test', 'no address')).toMatchObject({ exitStatus: 2 })
  })
})

interface KeyJson {
  readonly id: string
  readonly name: string
  readonly key: string
  readonly prefix: string
  readonly revoked_at: string | null
}
const createKey = async (...args: string[]) => (await json('keys', 'create', ...args)) as KeyJson

describe('wf keys', () => {
  test('creates a key of the documented form, shows it once, and stores only its hash', async () => {
    await create('Acme')
    expect((await wf('keys', 'list')).stdout).toBe('Acme has no API keys. Create one with wf keys create.\n')
    const { key, prefix } = await createKey('ci')
    expect(prefixOfApiKey(key)).toBe(prefix)
    const stored = await database.db.prisma.apiKey.findFirstOrThrow()
    expect(Buffer.from(stored.keySha256)).toEqual(hashApiKey(key))
    expect(JSON.stringify(stored)).not.toContain(key)
    expect((await wf('keys', 'create', 'other')).stdout).toMatch(
      /^wfk_\w{8}_\w{38}\nShown only this once\. Name: other; organization: Acme; scopes: read, start; does not expire\.\n$/,
    )
    await wf('keys', 'revoke', 'other')
    const { stdout } = await wf('keys', 'list')
    expect(stdout).toMatch(/^NAME {3}STATE .*\nci +active .*\nother +revoked /)
    expect(stdout).not.toContain(key)
    expect(await json('keys', 'list')).toMatchObject([{ name: 'ci', revoked_at: null }, { name: 'other' }])
  })

  test('gives all scopes, no expiry and the prefix as the name, unless the options say otherwise', async () => {
    await create('Acme')
    const { name, ...key } = await createKey()
    expect({ name, ...key }).toMatchObject({ name: key.prefix, scopes: ['read', 'start'], expires_at: null })
    expect(await createKey('--name=--json', '--scopes', 'read', '--expires', '2999-12-31')).toMatchObject({
      name: '--json',
      scopes: ['read'],
      expires_at: '2999-12-31T00:00:00.000Z',
    })
    // As the application counts them.
    const longest = '📦'.repeat(200)
    expect(await createKey(longest)).toMatchObject({ name: longest })
  })

  test.each<[string[], number, string]>([
    [['--name', 'x6', 'x7'], 2, 'Error: The key is named twice: x6 by --name, and x7. Give one name.\n'],
    [['two\nlines'], 2, 'one line'],
    [['a\u0000b'], 2, 'one line'],
    [['ci', '--scopes', 'write'], 2, 'one or more of read, start'],
    [['ci', '--expires', '2020-01-01'], 2, 'in the future'],
    [['old'], 1, 'Error: Acme already has a key named old (it may be revoked). Choose another name.\n'],
  ])('creates no key with %j', async (args, exitStatus, message) => {
    await create('Acme')
    await createKey('old')
    expect(await wf('keys', 'create', ...args)).toMatchObject(failure(message, exitStatus))
    expect(await json('keys', 'list')).toHaveLength(1)
  })

  test('revokes a key that is named by its name, prefix or the whole key, once', async () => {
    await create('Acme')
    for (const field of ['name', 'prefix', 'key'] as const) {
      const { [field]: named, name } = await createKey(`by ${field}`)
      const revoked = (await json('keys', 'revoke', named)) as KeyJson
      expect(revoked).toMatchObject({ name, revoked_at: expect.any(String) })
      expect(await json('keys', 'revoke', named)).toEqual(revoked)
    }
    const stderr = 'Error: Acme has no such key. List its keys with wf keys list.\n'
    expect(await wf('keys', 'revoke', 'ci')).toMatchObject({ stderr })
  })

  test('belong to the organization of --organization, which is needed if there are several', async () => {
    const none = 'Error: There is no organization yet. Create one with wf apply FILE.\n'
    expect((await wf('keys', 'list')).stderr).toBe(none)
    const { id } = await create('Acme')
    await create('Other')
    const several = /There are several organizations\. Choose one with --organization ID\.\n.*Acme\n.*Other\n/
    expect(await wf('keys', 'list')).toMatchObject(failure(several))
    for (const named of ['Other', id.toUpperCase()]) {
      expect(await wf('keys', 'list', '--organization', named)).toMatchObject({ exitStatus: 0 })
    }
    for (const unknown of ['Unknown', newId()]) {
      const message = `Error: There is no organization ${unknown}. List them with wf organizations list.\n`
      expect(await wf('keys', 'list', '--organization', unknown)).toMatchObject(failure(message))
    }
  })
})

test('keys and sessions are in the audit log when the operator creates, revokes, opens or closes one, and only then', async () => {
  const { id } = await create('Acme')
  const key = (await json('keys', 'create', 'ci', '--scopes', 'read')) as { id: string }
  await wf('keys', 'revoke', 'ci')
  await wf('keys', 'revoke', 'ci')
  const session = (await json('sessions', 'open')) as { id: string }
  await wf('sessions', 'open', session.id)
  await wf('sessions', 'close', session.id)
  await wf('sessions', 'close', session.id)
  const { rows } = await database.db.pool.query(
    `SELECT action, actor_name AS actor, target_id AS target FROM audit_events
       WHERE organization_id = $1 AND actor_kind = 'operator' AND action <> 'organization.created' ORDER BY id`,
    [id],
  )
  expect(rows).toEqual([
    { action: 'api_key.created', actor: 'operator', target: key.id },
    { action: 'api_key.revoked', actor: 'operator', target: key.id },
    { action: 'session.opened', actor: 'operator', target: session.id },
    { action: 'session.closed', actor: 'operator', target: session.id },
  ])
})

/** What is stored with the name of a person: sign-ins, versions, notices, and a run with a declined payload. */
async function nameBob(organizationId: string, userId: string, accountId: string): Promise<void> {
  const { prisma, pool } = database.db
  const name = 'Bobby "B"'
  const target = { targetKind: 'account', targetId: accountId, targetName: name }
  const account = { actorName: 'not signed in', action: 'account.saved', ...target, changes: ['Bob'] }
  const changes = [{ field: 'users', old: [], new: ['Bob@acme.test', 'ada@acme.test'] }]
  const workflow = { actorName: 'bob@acme.test', action: 'workflow_users.saved', changes }
  const [person, stranger] = [{ actorKind: 'person', organizationId, actorId: userId }, { actorKind: 'stranger' }]
  const events = [
    { ...person, ...account },
    { ...stranger, ...account },
    { ...person, ...workflow },
    { ...stranger, organizationId, ...workflow },
  ]
  await prisma.auditEvent.createMany({
    data: events.map((event) => ({ id: newId(), address: '192.0.2.1', ...event })),
  })
  const run = await createRun(organizationId, '')
  const { id: runId, workflowId } = run
  const deliveryId = newId()
  await pool.query(
    `INSERT INTO workflow_versions (workflow_id, number, saved_by, parts, document, bytes) VALUES ($1, 1, $2, '{}', '{}', 2)`,
    [workflowId, name],
  )
  const text = `Nothing was sent to Order intake: ${name} declined the payload: No`
  const ended = { status: 'failed', finishedAt: new Date(), error: `delivery_declined: ${text}` }
  await prisma.start.update({ where: { id: runId }, data: ended })
  const later = newId()
  await prisma.start.create({ data: { ...run, id: later, number: 2, status: 'succeeded', finishedAt: new Date() } })
  await createPrompt(later, { text })
  const summary = { turn: 0, through: 1, text: `${name} did not want it.`, cost_micros: 7 }
  await prisma.runStep.create({ data: { runId: later, position: 0, epoch: 1, kind: 'session_summary', data: summary } })
  const steps = [
    { kind: 'approval_decision', data: { call_id: 'c', delivery_id: deliveryId, decided_by: name } },
    { kind: 'tool_result', data: { call_id: 'c', ok: false, text, error: 'delivery_declined' } },
  ]
  for (const [position, step] of steps.entries()) {
    await prisma.runStep.create({ data: { runId, position, epoch: 1, ...step } })
  }
  const decided = { status: 'declined', decidedAt: new Date(), decidedBy: userId, decidedByName: name }
  const of = { organizationId, runId, sourceId: newId(), sourceName: 'Order intake', requestBody: {} }
  await prisma.approval.create({ data: { deliveryId, ...of, expiresAt: new Date(), ...decided } })
  const paused = { type: 'notice.source_paused', text: `Billing was paused by ${name}: its payloads wait` }
  await pool.query(
    `INSERT INTO notices (id, organization_id, topic, status, user_id, recipient, body)
     VALUES (gen_random_uuid(), $1, 'paused', 'sent', $2, 'Bob@acme.test', '{}'),
       (gen_random_uuid(), $1, 'paused', 'sent', NULL, 'https://example.com/', $3)`,
    [organizationId, userId, paused],
  )
}

test('the instructions of a manifest are versions, which stay when it leaves them out', async () => {
  for (const instructions of ['Be brief.', 'Be kind.']) {
    expect(await apply({ organization: { name: 'Acme', instructions } })).toMatchObject({ exitStatus: 0 })
  }
  expect((await apply({ organization: { name: 'Acme' } })).stdout).toContain('New: 0, changed: 0, unchanged: 1.')
  const { rows } = await database.db.pool.query('SELECT text, saved_by_name FROM instructions ORDER BY number')
  expect(rows).toMatchObject([{ text: 'Be brief.' }, { text: 'Be kind.', saved_by_name: 'operator' }])
})

test('wf people erase deletes the person in all organizations, and every name of the person, and keeps who did what as an id', async () => {
  const [acme, other] = [await create('Acme'), await create('Other')]
  await addUser(acme.id, 'ada@acme.test', 'owner')
  const bob = await addUser(acme.id, 'Bob@acme.test', 'member')
  const accountId = bob.accountId!
  const ids = [bob.id, (await addUser(other.id, 'Bob@acme.test', 'member', accountId)).id]
  const { prisma } = database.db
  await prisma.account.update({ where: { id: accountId }, data: { name: 'Bobby "B"' } })
  await prisma.user.updateMany({ where: { accountId }, data: { firstName: 'Bob' } })
  await setRole('bob@acme.test', 'admin')
  const jobs = `INSERT INTO resend_jobs (id, organization_id, delivery_ids, resend_ids, per_second, created_by, created_by_name)
      SELECT gen_random_uuid(), organization_id, '{}', '{}', 1, id, 'Bob' FROM users WHERE id = ANY ($1)`
  await database.db.pool.query(jobs, [ids])
  await nameBob(acme.id, bob.id, accountId)
  await database.db.pool.query(
    `INSERT INTO instructions (organization_id, number, text, saved_by, saved_by_name) VALUES ($1, 1, 'Be brief.', $2, 'Bob')`,
    [acme.id, bob.id],
  )
  expect(await wf('people', 'erase', 'bob@acme.test')).toMatchObject(failure('--yes'))
  expect(await wf('people', 'erase', 'ada@acme.test', '--yes')).toMatchObject(failure('is the last owner of Acme'))
  await prisma.session.updateMany({ data: { leaseOwner: 'a runner' } })
  expect((await wf('people', 'erase', 'bob@acme.test', '--yes')).stderr).toContain('is under way. Repeat this')
  await prisma.session.updateMany({ data: { leaseOwner: null } })
  // Interrupted, it changes nothing, and can be repeated.
  await database.db.pool.query('ALTER TABLE run_steps RENAME TO gone')
  expect(await wf('people', 'erase', 'bob@acme.test', '--yes')).toMatchObject({ exitStatus: 1 })
  await database.db.pool.query('ALTER TABLE gone RENAME TO run_steps')
  const done = await wf('people', 'erase', 'BOB@acme.test', '--yes', '--json')
  expect(done).toMatchObject({ exitStatus: 0, stderr: '' })
  const { erased } = JSON.parse(done.stdout) as { erased: { user_id: string }[] }
  expect(erased.map((each) => each.user_id).toSorted()).toEqual(ids.toSorted())
  const tables = ['users', 'accounts', 'audit_events', 'resend_jobs', 'workflow_versions', 'notices', 'starts']
  tables.push('run_steps', 'run_prompts', 'approvals', 'instructions')
  const naming: string[] = []
  for (const table of tables) {
    const found = await database.db.pool.query(`SELECT FROM ${table} WHERE to_json(${table})::text ILIKE '%bob%'`)
    if (found.rowCount) naming.push(table)
  }
  expect(naming).toEqual([])
  const { rows: kept } = await database.db.pool.query(
    `SELECT actor_id, changes, address FROM audit_events WHERE actor_kind = 'person' AND target_id IS NULL`,
  )
  const changes = [{ field: 'users', old: [], new: ['erased person', 'ada@acme.test'] }]
  expect(kept).toEqual([{ actor_id: bob.id, changes, address: null }])
  expect(await wf('people', 'erase', 'bob@acme.test', '--organization', other.id, '--yes')).toMatchObject({
    exitStatus: 1,
  })
})

test('wf people erase finds the addresses that the person had before, and was to get', async () => {
  const { db } = database
  const [acme, other] = [await create('Acme'), await create('Other')]
  await addUser(acme.id, 'ada@acme.test', 'owner')
  const { id: userId, accountId } = await addUser(acme.id, 'bob@acme.test', 'member')
  await addUser(other.id, 'bob@acme.test', 'member', accountId!)
  await db.prisma.account.update({ where: { id: accountId! }, data: { passwordHash: 'hash' } })
  const changes = [{ field: 'users', old: [], new: ['bob@acme.test', 'ada@acme.test'] }]
  await recordAuditEvent(db.pool, { ...operatorOf(acme.id), action: 'workflow_users.saved', changes })
  const linkTo = async (email: string): Promise<string> => {
    const link = await createUserLink(db, userId, { kind: 'email', email }, () => {}, operatorOf(acme.id))
    if (typeof link !== 'object') throw new Error(link)
    return link.token
  }
  await linkTo('bob@third.test')
  const token = await linkTo('bob@second.test')
  const visitor = { principal: { address: '192.0.2.1', userAgent: null }, requestId: 'r' }
  const checked = { accountId: accountId!, passwordHash: 'hash' }
  expect(await acceptEmail(db, (await findOneTimeLink(db, token))!, checked, visitor)).toMatchObject({ userId })
  const done = await wf('people', 'erase', 'bob@second.test', '--yes')
  expect(done).toMatchObject({ exitStatus: 0, stderr: '' })
  const { rows } = await db.pool.query(`SELECT action, target_name, changes FROM audit_events
    WHERE to_json(audit_events)::text ILIKE '%bob%'`)
  expect(rows).toEqual([])
})

test.each([
  ['the address', 'Bob@acme.test'],
  ['it in small letters', 'bob@acme.test'],
])('wf people erase finds a person whom an admin removed before, and leaves one who has %s now', async (_, email) => {
  const { db } = database
  const { id: organizationId } = await create('Acme')
  await addUser(organizationId, 'ada@acme.test', 'owner')
  const { id, accountId } = await addUser(organizationId, 'Bob@acme.test', 'member')
  await nameBob(organizationId, id, accountId!)
  const membership = { id: organizationId, userId: id }
  const visitor = { principal: { address: '192.0.2.1', userAgent: null }, requestId: 'r' }
  await signIn(db, { id: accountId!, name: 'Bobby "B"' }, membership, 'password', visitor)
  expect(await deleteUser(db, id, () => {}, operatorOf(organizationId))).toBe('removed')
  const again = await addUser(organizationId, email, 'member')
  const target = { kind: 'user', id: again.id, name: email } as const
  await recordAuditEvent(db.pool, { ...operatorOf(organizationId), action: 'user.created', target })

  const done = await wf('people', 'erase', id, '--yes')
  expect(done).toMatchObject({ exitStatus: 0, stderr: '' })
  expect(done.stdout).toContain('Erased: Bob@acme.test of Acme (removed before).')
  expect(await wf('people', 'erase', id, '--yes')).toMatchObject(failure('There is no user'))
  expect(await db.prisma.auditEvent.findMany({ where: { targetId: again.id } })).toMatchObject([
    { targetName: target.name },
  ])
  const others = `SELECT action FROM audit_events
    WHERE target_id IS DISTINCT FROM $1 AND target_kind IS NOT NULL AND to_json(audit_events)::text ILIKE '%bob%'`
  expect((await db.pool.query(others, [again.id])).rows).toEqual([])

  expect(await deleteUser(db, again.id, () => {}, operatorOf(organizationId))).toBe('removed')
  const byAddress = await wf('people', 'erase', 'BOB@acme.test', '--yes', '--json')
  expect(JSON.parse(byAddress.stdout)).toMatchObject({ erased: [{ user_id: again.id }] })
  for (const table of ['audit_events', 'workflow_versions', 'notices', 'starts', 'run_steps', 'approvals']) {
    const found = await db.pool.query(`SELECT FROM ${table} WHERE to_json(${table})::text ILIKE '%bob%'`)
    expect([table, found.rowCount]).toEqual([table, 0])
  }
})

test('wf people erase finds a person of a manifest who was removed again after it was erased, once', async () => {
  const { db } = database
  const { id: organizationId } = await create('Acme')
  await addUser(organizationId, 'ada@acme.test', 'owner')
  const manifest = { organization: { name: 'Acme' }, users: [{ email: 'bob@acme.test' }] }
  const makeAndRemove = async () => {
    expect(await apply(manifest)).toMatchObject({ exitStatus: 0 })
    const { id } = await db.prisma.user.findFirstOrThrow({ where: { email: 'bob@acme.test' } })
    expect(await deleteUser(db, id, () => {}, operatorOf(organizationId))).toBe('removed')
    return id
  }
  const id = await makeAndRemove()
  expect(await wf('people', 'erase', 'bob@acme.test', '--yes')).toMatchObject({ exitStatus: 0 })
  for (let count = 0; count < 2; count += 1) expect(await makeAndRemove()).toBe(id)
  const done = await wf('people', 'erase', 'bob@acme.test', '--yes', '--json')
  expect(JSON.parse(done.stdout)).toEqual({ erased: [{ user_id: id, organization_id: organizationId }] })
  expect(await wf('people', 'erase', 'bob@acme.test', '--yes')).toMatchObject(failure('There is no user'))
})

test('wf people erase leaves the events of another person who has an earlier address now', async () => {
  const { prisma, pool } = database.db
  const { id: organizationId } = await create('Acme')
  await addUser(organizationId, 'ada@acme.test', 'owner')
  const { id, accountId } = await addUser(organizationId, 'bob@acme.test', 'member')
  const change = { email: 'robert@acme.test', emailKey: 'robert@acme.test' }
  await prisma.account.update({ where: { id: accountId! }, data: change })
  await prisma.user.update({ where: { id }, data: change })
  const other = await addUser(organizationId, 'bob@acme.test', 'member')
  const by = operatorOf(organizationId)
  await recordAuditEvent(pool, {
    ...by,
    action: 'account.saved',
    target: { kind: 'account', id: accountId!, name: 'Robert' },
    changes: [{ field: 'email', old: 'bob@acme.test', new: 'robert@acme.test' }],
  })
  const changes = [{ field: 'role', old: null, new: 'member' }]
  const target = { kind: 'user', id: other.id, name: 'bob@acme.test' } as const
  await recordAuditEvent(pool, { ...by, action: 'user.saved', target, changes })
  expect(await wf('people', 'erase', 'robert@acme.test', '--yes')).toMatchObject({ exitStatus: 0, stderr: '' })
  const kept = await prisma.auditEvent.findMany({ where: { targetId: other.id } })
  expect(kept).toMatchObject([{ action: 'user.saved', targetName: 'bob@acme.test', changes }])
  expect(await prisma.auditEvent.count({ where: { targetId: accountId! } })).toBe(1)
  const { rows } = await pool.query(`SELECT FROM audit_events WHERE to_json(audit_events)::text ILIKE '%robert%'`)
  expect(rows).toEqual([])
})

test('single runs and deliveries are deleted with everything that has their texts, but not while they are under way', async () => {
  const { id: organizationId } = await create('Acme')
  const { prisma, pool } = database.db
  const run = await createRun(organizationId, 'Ada')
  const { id: runId, workflowId } = run
  const sourceId = newId()
  await prisma.runStep.create({ data: { runId, position: 0, kind: 'message', data: {}, epoch: 1 } })
  const sent = {
    organizationId,
    sourceId,
    kind: 'payload',
    outcome: 'accepted',
    requestBody: {},
    finishedAt: new Date(),
  }
  const [ofRun, single] = [newId(), newId()]
  await prisma.delivery.create({ data: { id: ofRun, runId, status: 200, ...sent } })
  await prisma.delivery.create({ data: { id: single, status: 200, ...sent } })
  await pool.query(
    `INSERT INTO cases (id, organization_id, workflow_id, run_id, name, context, expected, saved_by_name)
       VALUES (gen_random_uuid(), $1, $2, $3, 'Case', 'go', '[]', 'Ada')`,
    [organizationId, workflowId, runId],
  )
  expect(await wf('runs', 'delete', runId, '--yes')).toMatchObject(failure('not ended'))
  expect((await wf('deliveries', 'delete', ofRun, '--yes')).stderr).toContain(`wf runs delete ${runId}`)
  expect(await json('deliveries', 'delete', single, '--yes')).toEqual({ deleted: single })
  const error = 'order_refused: No orders of Ada.'
  const ended = { status: 'failed', finishedAt: new Date(), notSucceededAt: new Date(), error }
  await prisma.start.update({ where: { id: runId }, data: ended })
  const webhook = `INSERT INTO notice_webhooks (organization_id, url) VALUES ($1, 'https://example.com/')`
  await pool.query(webhook, [organizationId])
  await recordNotices(database.db, organizationId, false)
  const notices = async () => (await pool.query<{ text: string }>(`SELECT body ->> 'text' AS text FROM notices`)).rows
  expect(await notices()).toEqual([{ text: `1 × W failed: ${error}` }])
  const later = { ...run, id: newId(), number: 2 }
  await prisma.start.create({ data: { ...later, status: 'succeeded', finishedAt: new Date() } })
  const summary = { turn: 0, through: 1, text: 'Ada ordered.', cost_micros: 7 }
  const step = { position: 0, kind: 'session_summary', data: summary, epoch: 1 }
  await prisma.runStep.create({ data: { runId: later.id, ...step } })
  await createPrompt(later.id, { message: 'Ada' })
  const session = { where: { id: run.sessionId } }
  await prisma.session.update({ ...session, data: { leaseOwner: 'a runner' } })
  expect((await wf('runs', 'delete', runId, '--yes')).stderr).toContain('is under way. Repeat this')
  await prisma.session.update({ ...session, data: { leaseOwner: null } })
  expect(await json('runs', 'delete', runId, '--yes')).toEqual({ deleted: runId })
  const left = [await prisma.start.count(), await prisma.delivery.count()]
  expect(left).toEqual([1, 0])
  expect((await pool.query('SELECT FROM run_prompts UNION ALL SELECT FROM cases')).rowCount).toBe(0)
  expect(await notices()).toEqual([{ text: '1 × W failed: The run was deleted.' }])
  // What the summary cost stays.
  expect(await prisma.runStep.findMany()).toMatchObject([{ runId: later.id, data: { text: '', cost_micros: 7 } }])
  expect(await operatorEvents()).toEqual(
    expect.arrayContaining([
      { action: 'delivery.deleted', target: null, changes: [] },
      { action: 'run.deleted', target: null, changes: [] },
    ]),
  )
})

const afterRestore = async (args: string[], ask?: (question: string) => Promise<string>) =>
  await runWf(settings(), ['after-restore', ...args], { ask })

/** Ends the connections of a service, which PostgreSQL lists until it has noticed that. */
async function disconnect(service: ReturnType<typeof createDatabase>): Promise<void> {
  const { rows } = await service.pool.query<{ name: string }>(`SELECT current_setting('application_name') AS name`)
  await service.close()
  const listed = 'SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1'
  await waitUntil(async () => (await database.db.pool.query(listed, [rows[0]!.name])).rowCount === 0)
}

describe('wf after-restore', () => {
  test('refuses while a service is connected, and without a confirmation', async () => {
    const runner = createDatabase({ url: database.url, applicationName: 'runner' })
    await runner.ping()
    expect(await afterRestore(['--yes'])).toMatchObject(failure('services use the database: runner. Stop them first.'))
    await disconnect(runner)
    expect(await afterRestore([])).toMatchObject(failure('--yes'))
    expect(await afterRestore([], async () => 'yes')).toMatchObject({ exitStatus: 1 })
  })

  test('refuses when a service has connected before the confirmation was entered', async () => {
    const gateway = createDatabase({ url: database.url, applicationName: 'gateway' })
    const ask = async () => {
      await gateway.ping()
      return 'restored'
    }
    expect(await afterRestore([], ask)).toMatchObject(failure('services use the database: gateway. Stop them first.'))
    await disconnect(gateway)
  })

  test('says what it ended', async () => {
    const none = { runs: 0, deliveries: 0, schedules: 0, resend_jobs: 0 }
    expect((await afterRestore(['--yes', '--json'])).json()).toEqual(none)
    const stdout = expect.stringContaining('0 runs ended as failed')
    expect(await afterRestore([], async () => 'restored')).toMatchObject({ exitStatus: 0, stdout })
  })
})

describe('wf migrate', () => {
  test('names the missing privilege, and is safe to run several times at once', async () => {
    const { db } = database
    await db.pool.query('DROP SCHEMA public CASCADE')
    const noSchema = 'The database has no schema "public": as its owner, run CREATE SCHEMA public.'
    expect((await wf('migrate')).stderr).toContain(noSchema)
    await db.pool.query('CREATE SCHEMA public')
    await db.pool.query('REVOKE CREATE ON SCHEMA public FROM CURRENT_USER')
    const noRight = /The role "\w+" may not create tables here: as a superuser, run ALTER DATABASE/
    expect((await wf('migrate')).stderr).toMatch(noRight)
    await db.pool.query('GRANT CREATE ON SCHEMA public TO CURRENT_USER')
    expect(await wf('runs', 'list')).toMatchObject(failure('the tables are missing. Run wf migrate.'))
    const results = await Promise.all([1, 2, 3].map(() => wf('migrate', '--json')))
    const applied = results.map(({ stdout }) => (JSON.parse(stdout) as { applied: string[] }).applied)
    expect(results.map(({ exitStatus }) => exitStatus)).toEqual([0, 0, 0])
    expect(applied.flat().toSorted()).toEqual([...new Set(applied.flat())].toSorted())
    expect(applied.flat()).toContain('001_organizations')
    expect(await wf('migrate')).toMatchObject({ exitStatus: 0, stdout: 'The database is up to date.\n' })
  })

  test('refuses a server that accepts no writes, as do other commands that write', async () => {
    const name = new URL(database.url).pathname.slice(1)
    await database.db.pool.query(`ALTER DATABASE "${name}" SET default_transaction_read_only = on`)
    expect(await wf('migrate')).toMatchObject(failure('accepts no writes here: name the primary in DATABASE_URL'))
    expect(await wf('after-restore', '--yes')).toMatchObject(failure('it accepts no writes. Name the primary'))
    await database.db.pool.query(`ALTER DATABASE "${name}" RESET default_transaction_read_only`)
  })

  test('says how to create a database that does not exist', async () => {
    const url = new URL(database.url)
    url.pathname = '/no_such_database'
    const message = 'the database in DATABASE_URL does not exist. Create it first'
    expect(await runWf({ DATABASE_URL: url.href }, ['migrate'])).toMatchObject(failure(message))
  })
})
