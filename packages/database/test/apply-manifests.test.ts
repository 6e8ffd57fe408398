import { beforeEach, describe, expect, test } from '@jest/globals'
import { beginTransaction, untilLocked } from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import {
  type AuditAction,
  createApiKey,
  hashApiKey,
  operatorOf,
  recordAuditEvent,
  revokeApiKey,
  saveInstructions,
} from '../src/organizations/index.ts'
import type { Database } from '../src/connection/client.ts'
import { newId } from '../src/connection/ids.ts'
import {
  type AppliedManifest,
  type ApplyOptions,
  applyManifests,
  ManifestOverwriteError,
} from '../src/manifest/apply-manifests.ts'
import { ManifestError, toManifest } from '../src/manifest/manifest-errors.ts'
import { recordApplied } from '../src/manifest/person-edits.ts'
import { saveCase } from '../src/runs/index.ts'
import {
  createSecretBox,
  deleteWebhookSource,
  findWebhookSource,
  saveWebhookSource,
  type SecretBox,
} from '../src/sources/index.ts'

const database = useTestDatabase({ statementTimeoutMs: 60_000 })
let db: Database

beforeEach(async () => {
  ;({ db } = database)
  await db.pool.query('DELETE FROM organizations; DELETE FROM audit_events')
})

const apply = async (...values: unknown[]) => (await applyManifests(db, values.map(toManifest))).at(-1)!

const applyWith = async (options: ApplyOptions, value: unknown) =>
  (await applyManifests(db, [toManifest(value)], options))[0]!
const plan = async (value: unknown, secrets?: SecretBox) => await applyWith({ isDryRun: true, secrets }, value)

const violationsOf = async (...values: unknown[]): Promise<string[]> => {
  try {
    await apply(...values)
    return []
  } catch (error) {
    if (error instanceof ManifestError) return error.violations.map(({ path, message }) => `${path}: ${message}`)
    throw error
  }
}

const OF_WORKFLOWS = ['workflows', 'workflow_users', 'triggers', 'trigger_events', 'subagent_sources', 'files']
const TABLES = ['organizations', 'users', 'api_keys', ...OF_WORKFLOWS, 'sessions', 'webhook_sources']

/** Every row with the transaction that wrote it: equal snapshots mean that nothing was even rewritten. */
async function snapshot(): Promise<unknown[][]> {
  const queries = TABLES.map((table) => db.pool.query(`SELECT xmin::text, t.* FROM ${table} t ORDER BY t::text`))
  return (await Promise.all(queries)).map(({ rows }) => rows)
}

const trigger = {
  name: 'From the shop',
  trigger_source: { slug: 'api', name: 'API' },
  events: [
    { slug: 'created', name: 'Created' },
    { slug: 'changed', name: 'Changed' },
  ],
  filters: { zebra: 1, ape: [{ b: 1.5, a: null }] },
  input_message: 'An order came in:',
  subagent_sources: [
    { name: 'order intake', type: 'api' },
    { name: 'Researcher', type: 'platform_internal' },
    { name: 'Main street', type: 'street' },
  ],
}

const manifest = {
  organization: { name: 'Acme' },
  users: [{ email: 'ada@acme.test', first_name: 'Ada', last_name: 'Lovelace' }, { email: 'bob@acme.test' }],
  api_keys: [{ name: 'ci' }],
  webhook_sources: [
    {
      name: 'Order intake',
      description: 'Takes orders.',
      endpoint_url: 'https://acme.example/orders',
      signing_secret: 'a secret',
      example_request_body: { order_id: 'A-1', total: 1.5 },
    },
  ],
  workflows: [
    {
      name: 'Forward',
      description: 'Send the order to Order intake.',
      scope: 'only_me',
      auto_run: { enabled: true, frequency: 'daily' },
      users: ['ada@acme.test'],
      triggers: [trigger, { ...trigger, is_active: false, filters: null, subagent_sources: [] }],
      files: [{ name: 'a.md', path: ['docs', 'more'], content: '# Ä' }, { name: 'b.md' }],
    },
    { name: 'Idle', is_active: false },
  ],
  sessions: [{ open: true }, { open: false }],
}

const withWorkflow = (changes: object) => ({
  ...manifest,
  workflows: [{ ...manifest.workflows[0], ...changes }, manifest.workflows[1]],
})

const source = manifest.webhook_sources[0]!

/** Saves a webhook source as the dispatcher does. */
async function saveSource(organizationId: string, id: string, changes: { name?: string; signingSecret?: Buffer }) {
  const { name, description, endpoint_url } = source
  const example_request_body = { total: 1.5, order_id: 'A-1' }
  const saved = { name, description, endpoint_url, example_request_body, signingSecret: null, isVerified: true }
  await saveWebhookSource(db, organizationId, id, { ...saved, ...changes }, null)
}

const idsOf = ({ workflows, sessions, webhookSources }: AppliedManifest) => [
  ...workflows.flatMap(({ id, triggers, files }) => [id, ...[...triggers, ...files].map((child) => child.id)]),
  ...[...sessions, ...webhookSources].map(({ id }) => id),
]

/** What happened to everything that the manifest names, except webhook sources, which the dispatcher saves. */
const outcomesOf = ({ organization, users, apiKeys, workflows, sessions }: AppliedManifest) =>
  new Set([organization, ...users, ...apiKeys, ...workflows, ...sessions].map(({ outcome }) => outcome))

const withKey = (entry: object) => ({ organization: { name: 'Acme' }, api_keys: [{ name: 'ci', ...entry }] })
const readForward = async () => await db.prisma.workflow.findFirstOrThrow({ where: { name: 'Forward' } })
const storedKey = async () => await db.prisma.apiKey.findFirstOrThrow({ where: { name: 'ci' } })

const withSession = (entry: object) => ({ organization: { name: 'Acme' }, sessions: [entry] })

describe('applyManifests', () => {
  test('writes everything that the manifest names', async () => {
    const applied = await apply(manifest)
    expect(outcomesOf(applied)).toEqual(new Set(['created']))
    expect(applied).toMatchObject({
      users: [{ email: 'ada@acme.test' }, { email: 'bob@acme.test' }],
      apiKeys: [{ name: 'ci', scopes: ['read', 'start'], revoked: false }],
      workflows: [{ name: 'Forward' }, { name: 'Idle', triggers: [], files: [] }],
      sessions: [{ open: true }, { open: false }],
    })
    const forward = await db.prisma.workflow.findUniqueOrThrow({
      where: { id: applied.workflows[0]!.id },
      include: {
        organization: true,
        users: { include: { user: true } },
        files: { orderBy: { name: 'asc' } },
        triggers: {
          orderBy: { createdAt: 'asc' },
          include: { events: { orderBy: { position: 'asc' } }, subagentSources: { orderBy: { position: 'asc' } } },
        },
      },
    })
    expect(forward).toMatchObject({
      name: 'Forward',
      description: 'Send the order to Order intake.',
      scope: 'only_me',
      isActive: true,
      autoRunEnabled: true,
      autoRunFrequency: 'daily',
      organization: { id: applied.organization.id, name: 'Acme', isSuspended: false },
      users: [{ user: { email: 'ada@acme.test', firstName: 'Ada', lastName: 'Lovelace' } }],
      files: [
        { name: 'a.md', path: ['docs', 'more'], content: '# Ä' },
        { name: 'b.md', path: [], content: '' },
      ],
      triggers: [
        {
          name: 'From the shop',
          isActive: true,
          sourceSlug: 'api',
          sourceName: 'API',
          inputMessage: 'An order came in:',
          events: [{ slug: 'created' }, { slug: 'changed' }],
          subagentSources: [
            { name: 'order intake', type: 'api', sourceId: applied.webhookSources[0]!.id },
            { name: 'Researcher', type: 'platform_internal', sourceId: null },
            { name: 'Main street', type: 'street', sourceId: expect.stringMatching(/^[0-9a-f-]{36}$/) },
          ],
        },
        { isActive: false, filters: null, subagentSources: [] },
      ],
    })
    expect(forward.autoRunNextAt!.getTime() - forward.autoRunAnchorAt!.getTime()).toBe(86_400_000)
    const filters = await db.pool.query('SELECT filters::text FROM triggers WHERE filters IS NOT NULL')
    expect(filters.rows).toEqual([{ filters: '{"zebra":1,"ape":[{"b":1.5,"a":null}]}' }])
    const closed = await db.pool.query('SELECT is_open FROM sessions WHERE closed_at IS NOT NULL')
    expect(closed.rows).toEqual([{ is_open: false }])
  })

  test('changes nothing when it is applied again, which it reports, and nothing that a manifest does not name', async () => {
    await apply(manifest)
    const before = await snapshot()
    expect(outcomesOf(await apply(manifest))).toEqual(new Set(['unchanged']))
    await apply({ organization: manifest.organization })
    expect(await snapshot()).toEqual(before)
  })

  test('changes nothing when it is applied again with budgets of more decimals than are stored', async () => {
    const budgets = { run_budget: 0.100_000_04, day_budget: 0.123_456_7 }
    const value = { ...acme({ month_budget: 0.1 + 0.2 }), workflows: [{ name: 'W', ...budgets }] }
    await apply(value)
    expect(outcomesOf(await apply(value))).toEqual(new Set(['unchanged']))
  })

  test('derives the same ids in every database, and other ids for an equal name in another organization', async () => {
    const applied = await apply(manifest)
    expect(applied.organization.id).toBe('92c5fadb-f3dd-536f-8c0a-7e2b85c8b9ab')
    const other = await apply({ ...manifest, organization: { name: 'Other' } })
    expect(new Set([...idsOf(applied), ...idsOf(other)]).size).toBe(2 * idsOf(applied).length)
  })

  test('uses given ids, in lower case, and given times', async () => {
    const [organizationId, workflowId, triggerId, fileId, sessionId, sourceId] = Array.from({ length: 6 }, newId)
    const times = { created_at: '2020-02-29T12:00:00.123Z', updated_at: '2021-01-01T00:00:00+02:00' }
    const triggers = [{ ...trigger, id: triggerId, created_at: '2020-03-01T00:00:00Z' }]
    const applied = await apply({
      organization: { id: organizationId!.toUpperCase(), name: 'Acme' },
      webhook_sources: [{ ...manifest.webhook_sources[0], id: sourceId!.toUpperCase() }],
      workflows: [{ id: workflowId, name: 'W', ...times, triggers, files: [{ id: fileId, name: 'a' }] }],
      sessions: [{ id: sessionId!.toUpperCase() }],
    })
    expect(applied.organization.id).toBe(organizationId)
    expect(idsOf(applied)).toEqual([workflowId, triggerId, fileId, sessionId, sourceId])
    expect(await db.prisma.workflow.findFirstOrThrow({ include: { triggers: true } })).toMatchObject({
      createdAt: new Date('2020-02-29T12:00:00.123Z'),
      updatedAt: new Date('2020-12-31T22:00:00Z'),
      triggers: [{ createdAt: new Date('2020-03-01T00:00:00Z') }],
    })
  })

  test('keeps the order of the manifest when no creation time is given', async () => {
    const workflows = Array.from({ length: 20 }, (_, i) => ({ name: `W${i}` }))
    await apply({ organization: { name: 'Acme' }, workflows })
    const found = await db.prisma.workflow.findMany({ orderBy: [{ createdAt: 'asc' }, { id: 'asc' }] })
    expect(found).toMatchObject(workflows)
  })

  test.each<[string, object]>([
    ['its description', { description: 'Other.' }],
    ['its schedule', { auto_run: { enabled: false, frequency: 'daily' } }],
    ['its users', { users: ['bob@acme.test'] }],
    ['the order of events', { triggers: [{ ...trigger, events: trigger.events.toReversed() }] }],
    ['a file', { files: [{ name: 'b.md', content: 'more' }] }],
  ])('renews the time of the last change of a workflow with %s, and of no other', async (_what, changes) => {
    await apply(manifest)
    const before = await db.prisma.workflow.findMany({ orderBy: { name: 'asc' } })
    const applied = await apply(withWorkflow(changes))
    const after = await db.prisma.workflow.findMany({ orderBy: { name: 'asc' } })
    expect(applied.workflows.map(({ outcome }) => outcome)).toEqual(['changed', 'unchanged'])
    expect(after[0]!.updatedAt.getTime()).toBeGreaterThan(before[0]!.updatedAt.getTime())
    expect(after[0]!.createdAt).toEqual(before[0]!.createdAt)
    expect(after[1]).toEqual(before[1])
  })

  test('refuses a text with the name of a PDF, except one that is stored like that', async () => {
    const errors = [
      'workflows[0].files[0].content: must be the file in base64, because its name is that of a PDF or an image',
    ]
    const id = newId()
    const withFile = (name: string, content: string) => withWorkflow({ files: [{ id, name, content }] })
    expect(await violationsOf(withFile('a.pdf', 'text'))).toEqual(errors)
    await apply(withFile('a.txt', 'text'))
    await db.pool.query("UPDATE files SET name = 'a.pdf'")
    expect(await violationsOf(withFile('a.pdf', 'text'))).toEqual([])
    expect(await violationsOf(withFile('a.pdf', 'more'))).toEqual(errors)
    expect(await violationsOf(withFile('b.pdf', 'text'))).toEqual(errors)
  })

  test('keeps the due time of a schedule that does not change', async () => {
    await apply(manifest)
    const before = await readForward()
    await apply(withWorkflow({ description: 'Other.' }))
    expect((await readForward()).autoRunNextAt).toEqual(before.autoRunNextAt)
    await apply(withWorkflow({ auto_run: undefined }))
    const none = { autoRunEnabled: null, autoRunFrequency: null, autoRunNextAt: null }
    expect(await readForward()).toMatchObject(none)
  })

  test('applies all manifests in one transaction: the second one can use a user of the first one', async () => {
    const first = { organization: manifest.organization, users: manifest.users }
    const second = { organization: manifest.organization, workflows: [{ name: 'W', users: ['ada@acme.test'] }] }
    await apply(first, second)
    expect(await db.prisma.workflowUser.count()).toBe(1)
  })

  test('writes nothing of any manifest when one has a violation, and reports which one', async () => {
    const broken = { organization: { name: 'Other' }, workflows: [{ name: 'W', users: ['eve@acme.test'] }] }
    await expect(apply(manifest, broken)).rejects.toMatchObject({
      violations: [{ manifestIndex: 1, path: 'workflows[0].users[0]' }],
    })
    expect(await db.prisma.organization.count()).toBe(0)
  })

  test('waits for a case that is being saved, and neither fails because of the other', async () => {
    const { organization, workflows } = await apply(manifest)
    const principal = {
      organizationId: organization.id,
      userId: newId(),
      role: 'owner',
      name: 'Ada',
      address: null,
    } as const
    const edit = { workflowId: workflows[0]!.id, principal, requestId: 'test' }
    // Its statements are so quick that another lock has to stop the save between two of them.
    using other = await beginTransaction(db.pool)
    await other.query('LOCK TABLE cases IN SHARE MODE')
    const saving = saveCase(db, edit, newId(), { name: 'Kept', context: 'Total: 1', expected: [], version: null })
    await untilLocked(db.pool, 'INSERT INTO cases')
    const applying = apply(withWorkflow({ description: 'Other.' }))
    await untilLocked(db.pool, 'FROM workflows')
    await other.query('COMMIT')
    const results = await Promise.allSettled([saving, applying])
    expect(results.map((result) => (result.status === 'rejected' ? String(result.reason) : 'done'))).toEqual([
      'done',
      'done',
    ])
  })

  test('runs one after the other when it is called concurrently', async () => {
    const [first, second] = await Promise.all([apply(manifest), apply(manifest)])
    expect([first.organization.outcome, second.organization.outcome].toSorted()).toEqual(['created', 'unchanged'])
    expect(await db.prisma.workflow.count()).toBe(2)
  })
})

describe('a manifest may not', () => {
  const [workflowId, triggerId, fileId, sessionId] = Array.from({ length: 4 }, newId)
  const foreign = {
    organization: { name: 'Foreign' },
    workflows: [
      { id: workflowId, name: 'W', triggers: [{ ...trigger, id: triggerId }], files: [{ id: fileId, name: 'a' }] },
    ],
    sessions: [{ id: sessionId }],
  }
  const taken = 'belongs to another organization: leave it out, or give another one'

  test('use an id of another organization', async () => {
    await apply(foreign)
    const before = await snapshot()
    expect(
      await violationsOf({
        organization: { name: 'Acme' },
        workflows: [
          { id: workflowId, name: 'W' },
          { name: 'V', triggers: [{ ...trigger, id: triggerId }], files: [{ id: fileId, name: 'a' }] },
        ],
        sessions: [{ id: sessionId }],
      }),
    ).toEqual([
      `workflows[0].id: ${taken}`,
      `workflows[1].triggers[0].id: ${taken}`,
      `workflows[1].files[0].id: ${taken}`,
      `sessions[0].id: ${taken}`,
    ])
    expect(await snapshot()).toEqual(before)
  })

  test('move a trigger from a workflow that it does not name, but from one that it names', async () => {
    await apply(foreign)
    const taker = { name: 'V', triggers: [{ ...trigger, id: triggerId }] }
    expect(await violationsOf({ organization: foreign.organization, workflows: [taker] })).toEqual([
      `workflows[0].triggers[0].id: belongs to workflow ${workflowId}: leave it out, or name that workflow too`,
    ])
    await apply({ organization: foreign.organization, workflows: [taker, { id: workflowId, name: 'W' }] })
    expect(await db.prisma.trigger.findMany({ include: { workflow: true } })).toMatchObject([
      { id: triggerId, workflow: { name: 'V' } },
    ])
  })

  test('give the id that is derived for another trigger, file or session, as after a renaming', async () => {
    const wanted = { ...withWorkflow({ triggers: [trigger], files: [{ name: 'a.md' }] }), sessions: [{}] }
    const { workflows, sessions } = await apply(wanted)
    const [{ triggers, files }] = workflows as [AppliedManifest['workflows'][number]]
    const renamed = {
      triggers: [{ ...trigger, id: triggers[0]!.id, name: 'From the old shop' }, trigger],
      files: [{ id: files[0]!.id, name: 'old.md' }, { name: 'a.md' }],
    }
    expect(await violationsOf({ ...withWorkflow(renamed), sessions: [{}, { id: sessions[0]!.id }] })).toEqual([
      'workflows[0].triggers[1]: would have the same id as workflows[0].triggers[0]: give each a different id',
      'workflows[0].files[1]: would have the same id as workflows[0].files[0]: give each a different id',
      'sessions[1]: would have the same id as sessions[0]: give each a different id',
    ])
  })

  test('name unknown users', async () => {
    expect(await violationsOf(withWorkflow({ users: ['ada@acme.test', 'adaa@acme.test', 'eve@acme.test'] }))).toEqual([
      'workflows[0].users[1]: is no user of the organization: did you mean ada@acme.test?',
      'workflows[0].users[2]: is no user of the organization: list eve@acme.test under users',
    ])
  })

  test('give a key that another name or organization uses', async () => {
    const { key } = createApiKey()
    await apply(withKey({ key }))
    const violation = 'api_keys[0].key: is in use already, under another name or in another organization'
    for (const taker of [{ ...withKey({ key }), organization: { name: 'Other' } }, withKey({ name: 'other', key })])
      expect(await violationsOf(taker)).toEqual([violation])
  })

  test('use the id of a deleted webhook source, or the name of a source with another id', async () => {
    const { organization } = await apply(manifest)
    const save = async (id: string, name: string) => await saveSource(organization.id, id, { name })
    const [goneId, liveId, newSourceId] = Array.from({ length: 3 }, newId)
    await save(goneId!, 'Gone')
    await save(liveId!, 'Live')
    await db.pool.query('UPDATE webhook_sources SET deleted_at = now() WHERE id = $1', [goneId])
    expect(
      await violationsOf({
        organization: manifest.organization,
        webhook_sources: [
          { ...source, id: goneId, name: 'Gone' },
          { ...source, id: newSourceId, name: 'LIVE' },
        ],
      }),
    ).toEqual([
      'webhook_sources[0].id: is that of a deleted webhook source and cannot be used again: leave it out',
      `webhook_sources[1].name: is the name of webhook source ${liveId}: give that id, or another name`,
    ])
    const applied = await apply({ organization: manifest.organization, webhook_sources: [{ ...source, name: 'live' }] })
    expect(applied.webhookSources[0]!.id).toBe(liveId)
  })
})

test('the API keys of a manifest replace the stored keys when they are given', async () => {
  await apply(withKey({}))
  const { key, prefix } = createApiKey()
  expect((await apply(withKey({ key }))).apiKeys[0]).toMatchObject({ key, prefix, outcome: 'changed' })
  expect((await apply(withKey({ key }))).apiKeys[0]).toMatchObject({ key, prefix, outcome: 'unchanged' })
  expect(Buffer.from((await storedKey()).keySha256)).toEqual(hashApiKey(key))
})

test.each<[string, object, object, object]>([
  ['a key keeps its scopes', withKey({ scopes: ['read'] }), withKey({}), { scopes: ['read'] }],
  ['repeated scopes are the same', withKey({}), withKey({ scopes: ['start', 'read', 'start'] }), {}],
  ['a revoked key stays so', withKey({ revoked: true }), withKey({}), { revoked: true }],
  ['a closed session stays so', withSession({ open: false }), withSession({}), { open: false }],
  ['a key gets other scopes', withKey({ scopes: ['read'] }), withKey({ scopes: ['start'] }), { outcome: 'changed' }],
  ['a key is revoked', withKey({}), withKey({ revoked: true }), { outcome: 'changed' }],
  ['a key is valid again', withKey({ revoked: true }), withKey({ revoked: false }), { outcome: 'changed' }],
  ['a session is closed', withSession({}), withSession({ open: false }), { outcome: 'changed' }],
  ['a session is opened', withSession({ open: false }), withSession({ open: true }), { outcome: 'changed' }],
])('%s, and is unchanged by another apply', async (_what, first, second, expected) => {
  await apply(first)
  for (const outcome of [{ outcome: 'unchanged', ...expected }, { outcome: 'unchanged' }]) {
    const { apiKeys, sessions } = await apply(second)
    expect([...apiKeys, ...sessions]).toMatchObject([outcome])
  }
})

const withAddress = (email: string, named = email) => ({
  organization: { name: 'Acme' },
  users: [{ email, first_name: 'Ada' }],
  workflows: [{ name: 'W', users: [named] }],
})

test('a key that is revoked while a manifest gives it other scopes stays so', async () => {
  const { organization, workflows } = await apply({ ...manifest, ...withKey({}) })
  using other = await beginTransaction(db.pool)
  await other.query('SELECT FROM workflows WHERE id = $1 FOR UPDATE', [workflows[0]!.id])
  const applying = apply({ ...manifest, ...withKey({ scopes: ['read'] }) })
  await untilLocked(db.pool, 'FROM workflows')
  const revoking = revokeApiKey(db, { name: 'ci' }, operatorOf(organization.id))
  await Promise.race([revoking, untilLocked(db.pool, 'api_keys')])
  await other.query('COMMIT')
  await Promise.all([applying, revoking])
  expect(await storedKey()).toMatchObject({ scopes: ['read'], revokedAt: expect.any(Date) })
})

test('an email address in a manifest names the user regardless of its case, and may change it', async () => {
  const first = await apply(withAddress('Ada@Acme.test'))
  const second = await apply(withAddress('ada@acme.test', 'ADA@acme.test'))
  const changes = [{ field: 'email', old: 'Ada@Acme.test', new: 'ada@acme.test' }]
  expect(second.users).toMatchObject([{ id: first.users[0]?.id, outcome: 'changed', changes }])
  const { rows } = await db.pool.query('SELECT email FROM users JOIN workflow_users ON user_id = users.id')
  expect(rows).toEqual([{ email: 'ada@acme.test' }])
  // As the workflow names it already.
  expect((await apply(withAddress('ADA@acme.test'))).users).toMatchObject([{ id: first.users[0]?.id }])
  const before = await snapshot()
  await apply(withAddress('ADA@acme.test'))
  expect(await snapshot()).toEqual(before)
})

test('an email address that its person no longer has is that of a new user, and the person stays', async () => {
  const first = await apply(withAddress('ada@acme.test'))
  await db.pool.query(`UPDATE users SET email = 'countess@acme.test'`)
  const second = await apply(withAddress('ada@acme.test'))
  expect(second.users).toMatchObject([{ outcome: 'created', email: 'ada@acme.test' }])
  expect(await db.prisma.user.findMany({ orderBy: { email: 'desc' } })).toMatchObject([
    { id: first.users[0]?.id, email: 'countess@acme.test' },
    { id: second.users[0]?.id, email: 'ada@acme.test' },
  ])
  expect((await apply(withAddress('ada@acme.test'))).users).toMatchObject([{ outcome: 'unchanged' }])
})

const acme = (fields: object) => ({ organization: { name: 'Acme', ...fields } })
const scheduled = (frequency: string, timing?: object) =>
  withWorkflow({ auto_run: { enabled: true, frequency, timing } })

const forwardOf = ({ organization, workflows: [forward] }: AppliedManifest) => ({
  organizationId: organization.id,
  id: forward!.id,
})
const withSource = (changes: object = {}) => ({ ...acme({}), webhook_sources: [{ ...source, ...changes }] })
const planSecret = async (secret: string | null | undefined, secrets: SecretBox | undefined) =>
  (await plan(withSource({ signing_secret: secret }), secrets)).webhookSources[0]?.changes
const secretChange = (value: string | null) => [{ field: 'signing_secret', old: 'set', new: value }]

/** Records what the application records when a person changes something. Returns the id of the event. */
async function recordEdit(
  organizationId: string,
  action: AuditAction,
  targetId: string,
  by = 'Ada',
  fields: readonly string[] = [],
): Promise<string> {
  await recordAuditEvent(db.pool, {
    actor: { kind: 'person', id: newId(), name: by },
    organizationId,
    action,
    target: { kind: action.split('.')[0]!, id: targetId, name: null },
    changes: fields.map((field) => ({ field, old: 1, new: 2 })),
  })
  const { rows } = await db.pool.query<{ id: string }>('SELECT id FROM audit_events ORDER BY id DESC LIMIT 1')
  return rows[0]!.id
}

async function appliedEvents() {
  const found = await db.pool.query(
    `SELECT target_kind AS kind, target_name AS name, changes FROM audit_events
     WHERE action = 'manifest.applied' AND actor_kind = 'operator' ORDER BY id`,
  )
  return found.rows as { kind: string; name: string; changes: object[] }[]
}

describe('the plan of a manifest', () => {
  test('has no change of instructions as the application saves them, which removes Unicode white space', async () => {
    const { id } = (await apply(acme({}))).organization
    await saveInstructions(db, { text: '\uFEFFBe brief.', version: '0' }, operatorOf(id))
    expect((await plan(acme({ instructions: '\u0085\uFEFFBe brief.\u0085' }))).organization.changes).toEqual([])
  })

  test('lists the old and the new value of each field, and users, triggers and files become exactly those', async () => {
    await apply(manifest)
    const changed = {
      ...withWorkflow({
        description: 'Send it twice.',
        auto_run: { enabled: true, frequency: 'weekly' },
        users: ['bob@acme.test'],
        triggers: [
          { ...trigger, is_active: false },
          { ...trigger, name: 'Second' },
        ],
        files: [{ name: 'a.md', path: ['docs', 'more'], content: 'two' }],
      }),
      organization: { name: 'Acme', suspended: true },
      users: [{ email: 'ada@acme.test', first_name: 'Ada M.', last_name: 'Lovelace' }, { email: 'bob@acme.test' }],
      api_keys: [{ name: 'ci', scopes: ['read'] }],
      sessions: [{ open: false }],
    }
    const planned = await plan(changed)
    expect(planned.organization.changes).toEqual([{ field: 'suspended', old: false, new: true }])
    expect(planned.users.map(({ changes }) => changes)).toEqual([
      [{ field: 'first_name', old: 'Ada', new: 'Ada M.' }],
      [],
    ])
    expect(planned.apiKeys[0]?.changes).toEqual([{ field: 'scopes', old: ['read', 'start'], new: ['read'] }])
    expect(planned.sessions[0]?.changes).toEqual([{ field: 'open', old: true, new: false }])
    expect(planned.workflows.map(({ outcome }) => outcome)).toEqual(['changed', 'unchanged'])
    expect(planned.workflows[0]?.changes).toEqual([
      { field: 'description', old: 'Send the order to Order intake.', new: 'Send it twice.' },
      { field: 'auto_run.frequency', old: 'daily', new: 'weekly' },
      { field: 'users', old: 'ada@acme.test', new: null },
      { field: 'users', old: null, new: 'bob@acme.test' },
      { field: 'triggers.From the shop', old: expect.objectContaining({ is_active: false }), new: null },
      { field: 'triggers.From the shop.is_active', old: true, new: false },
      { field: 'triggers.Second', old: null, new: expect.objectContaining({ name: 'Second', is_active: true }) },
      { field: 'files.b.md', old: expect.objectContaining({ name: 'b.md' }), new: null },
      {
        field: 'files.docs/more/a.md.content',
        old: expect.stringMatching(/^SHA-256 /),
        new: expect.stringMatching(/^SHA-256 /),
      },
    ])
    const applied = await apply(changed)
    expect(applied.workflows).toMatchObject(planned.workflows.map(({ id, outcome }) => ({ id, outcome })))
    expect((await plan(changed)).workflows.map(({ outcome }) => outcome)).toEqual(['unchanged', 'unchanged'])
  })

  test('has no change of the times of a schedule whose fields have another order', async () => {
    await apply(scheduled('daily', { time: '08:30', day: null, time_zone: 'UTC' }))
    const [forward] = (await apply(scheduled('daily', { time_zone: 'UTC', day: null, time: '08:30' }))).workflows
    expect(forward).toMatchObject({ outcome: 'unchanged', changes: [] })
  })

  test('undoes the deletion of a workflow whose runs are still being deleted', async () => {
    const [forward] = (await apply(manifest)).workflows
    await db.pool.query('UPDATE workflows SET deleted_at = now() WHERE id = $1', [forward?.id])
    const [again] = (await apply(manifest)).workflows
    expect(again).toMatchObject({ outcome: 'changed', changes: [{ field: 'deleted', old: true, new: false }] })
    expect(await db.prisma.workflow.count({ where: { deletedAt: null } })).toBe(2)
  })

  describe('of a webhook source', () => {
    const box = createSecretBox([Buffer.alloc(32, 1).toString('base64')])
    const save = async () => {
      const { organization, webhookSources } = await apply(withSource())
      const sourceId = webhookSources[0]!.id
      const signingSecret = box.encrypt({ organizationId: organization.id, id: sourceId }, 'a secret')
      await saveSource(organization.id, sourceId, { signingSecret })
    }

    test('compares like the dispatcher: the order of the fields of an example does not count', async () => {
      expect((await plan(withSource())).webhookSources).toMatchObject([{ outcome: 'created', changes: [], version: 0 }])
      await save()
      const unchanged = { outcome: 'unchanged', changes: [], version: 1 }
      expect((await plan(withSource(), box)).webhookSources).toMatchObject([unchanged])
      const changed = withSource({ endpoint_url: 'https://acme.example/new', example_request_body: { id: 'A-1' } })
      expect((await plan(changed, box)).webhookSources[0]?.changes).toEqual([
        { field: 'endpoint_url', old: source.endpoint_url, new: 'https://acme.example/new' },
        { field: 'example_request_body', old: source.example_request_body, new: { id: 'A-1' } },
      ])
    })

    test('derives no id that another entry has, as one that was renamed, also where nothing is stored', async () => {
      const [first] = (await plan(withSource())).webhookSources
      const renamed = { ...source, id: first?.id, name: 'Orders' }
      const { webhookSources } = await plan({ ...acme({}), webhook_sources: [renamed, source] })
      expect(new Set(webhookSources.map((each) => each.id)).size).toBe(2)
    })

    test('says that a secret changes, and never shows it', async () => {
      await save()
      expect(await planSecret('another', box)).toEqual(secretChange('another secret'))
      expect(await planSecret(null, box)).toEqual(secretChange(null))
      expect(await planSecret(undefined, undefined)).toEqual([])
      expect(await planSecret('a secret', undefined)).toEqual(secretChange('compared when it is saved'))
    })
  })
})

describe('what a person changed in the application', () => {
  test('is not overwritten, unless it is allowed by its event or altogether', async () => {
    const { organizationId, id } = forwardOf(await apply(manifest))
    await recordEdit(organizationId, 'workflow.saved', id, 'Bob')
    const eventId = await recordEdit(organizationId, 'trigger.saved', id)
    const changed = withWorkflow({ description: 'Another.' })
    const refused = await apply(changed).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(ManifestOverwriteError)
    const last = { eventId, action: 'trigger.saved', by: 'Ada', at: expect.any(Date), count: 2 }
    expect((refused as ManifestOverwriteError).refused).toEqual([{ kind: 'workflow', id, name: 'Forward', ...last }])
    expect((await plan(changed)).overwrites).toHaveLength(1)
    const newer = await recordEdit(organizationId, 'workflow.saved', id)
    // Also after other things of the organization were applied.
    await apply({ organization: { name: 'Acme' }, workflows: [{ name: 'Other' }] })
    await expect(applyWith({ overwrite: new Set([eventId]) }, changed)).rejects.toBeInstanceOf(ManifestOverwriteError)
    const [forward] = (await applyWith({ overwrite: new Set([newer]) }, changed)).workflows
    expect(forward).toMatchObject({ outcome: 'changed' })
    expect((await apply(manifest)).overwrites).toEqual([])
  })

  test('counts as settled once a manifest has the same values', async () => {
    const { organizationId, id } = forwardOf(await apply(manifest))
    await recordEdit(organizationId, 'workflow.saved', id)
    await apply(manifest)
    expect((await apply(withWorkflow({ description: 'Another.' }))).overwrites).toEqual([])
  })

  test('stays protected while manifests leave it out, which change the rest', async () => {
    const { id } = (await apply(acme({ month_budget: 5 }))).organization
    await recordEdit(id, 'organization.saved', id, 'Ada', ['month_budget'])
    await db.pool.query('UPDATE organizations SET month_budget = 9e6 WHERE id = $1', [id])
    await apply(acme({}))
    await apply(acme({ suspended: true }))
    await expect(apply(acme({ month_budget: 5 }))).rejects.toBeInstanceOf(ManifestOverwriteError)
    await apply(acme({ suspended: true, month_budget: 9 }))
    expect((await apply(acme({ month_budget: 5 }))).overwrites).toEqual([])
  })

  test('asks when a manifest without its times changes the frequency of a schedule, which drops them', async () => {
    const { organization, workflows } = await apply(scheduled('daily'))
    await recordEdit(organization.id, 'workflow.saved', workflows[0]!.id, 'Ada', ['timing'])
    await apply(scheduled('daily'))
    await expect(apply(scheduled('weekly'))).rejects.toBeInstanceOf(ManifestOverwriteError)
  })

  test('stays protected as a revoked key that a manifest without "revoked" has', async () => {
    const { organization, apiKeys } = await apply(manifest)
    await db.pool.query('UPDATE api_keys SET revoked_at = now()')
    await recordEdit(organization.id, 'api_key.revoked', apiKeys[0]!.id)
    await apply(withKey({}))
    await expect(apply(withKey({ revoked: false }))).rejects.toBeInstanceOf(ManifestOverwriteError)
  })

  test('is not what changes nothing, such as a start', async () => {
    const { organizationId, id } = forwardOf(await apply(manifest))
    for (const action of ['workflow.started', 'webhook_source.tested'] as const) {
      await recordEdit(organizationId, action, id)
    }
    expect((await apply(withWorkflow({ description: 'Another.' }))).overwrites).toEqual([])
  })

  test('is no role, case or webhook of notices, which a manifest does not have, but a name beside the role is', async () => {
    const { organization, users, workflows } = await apply(manifest)
    const edit = recordEdit.bind(undefined, organization.id)
    const named = (name: string) => ({ ...manifest, users: [{ email: 'ada@acme.test', first_name: name }] })
    await edit('user.saved', users[0]!.id, 'Bob', ['role', 'is_deactivated'])
    await edit('case.saved', workflows[0]!.id, 'Bob', ['name', 'payloads'])
    await edit('notice_webhook.saved', organization.id, 'Bob', ['host'])
    expect((await apply(acme({ suspended: true }))).overwrites).toEqual([])
    expect((await apply(named('Augusta'))).overwrites).toEqual([])
    expect((await apply(withWorkflow({ description: 'Another.' }))).overwrites).toEqual([])
    await edit('user.saved', users[0]!.id, 'Bob', ['first_name', 'role'])
    await expect(apply(named('Augusta'))).rejects.toBeInstanceOf(ManifestOverwriteError)
  })

  test('is no webhook source that was saved as it is, which only verifies it again', async () => {
    const { organization, webhookSources } = await apply(withSource())
    const { id } = webhookSources[0]!
    const { id: userId } = await db.prisma.user.create({
      data: { id: newId(), organizationId: organization.id, email: 'admin@acme.test', role: 'admin' },
    })
    const by = { principal: { ...operatorOf(organization.id).principal, userId }, requestId: null }
    const { signing_secret: _secret, ...values } = source
    const save = async (description: string) => {
      const seen = (await findWebhookSource(db, organization.id, id)) ?? null
      const change = { ...values, description, signingSecret: undefined, isVerified: true }
      await saveWebhookSource(db, organization.id, id, change, seen, seen ? by : undefined)
    }
    const overwrites = async () => (await plan(withSource({ description: 'Another.' }))).overwrites
    await save(source.description)
    await save(source.description)
    expect(await overwrites()).toEqual([])
    await save('Of a person.')
    expect(await overwrites()).toMatchObject([{ action: 'webhook_source.saved', count: 1 }])
  })

  test('is also a deleted workflow', async () => {
    const { organizationId, id } = forwardOf(await apply(manifest))
    await db.pool.query('DELETE FROM workflows WHERE id = $1', [id])
    await recordEdit(organizationId, 'workflow.deleted', id)
    expect((await plan(manifest)).overwrites).toMatchObject([{ action: 'workflow.deleted', name: 'Forward' }])
  })

  test('is also a deleted webhook source that a manifest had, whose id is not used again, until it is made anew', async () => {
    const save = async ({ organization, webhookSources: [planned] }: AppliedManifest) => {
      await saveSource(organization.id, planned!.id, {})
      await recordApplied(db.pool, organization.id, [planned!])
      return { organizationId: organization.id, id: planned!.id }
    }
    const deleteSaved = async ({ organizationId, id }: Awaited<ReturnType<typeof save>>) => {
      await recordEdit(organizationId, 'webhook_source.deleted', id)
      await deleteWebhookSource(db, organizationId, id)
    }
    const first = await save(await apply(withSource()))
    await deleteSaved(first)
    const deleted = { kind: 'webhook_source', action: 'webhook_source.deleted', name: source.name, count: 1 }
    expect((await plan(withSource())).overwrites).toMatchObject([deleted])
    await expect(apply(withSource())).rejects.toBeInstanceOf(ManifestOverwriteError)
    const second = await save(await applyWith({ overwrite: 'all' }, withSource()))
    expect(second.id).not.toBe(first.id)
    expect((await plan(withSource({ description: 'Another.' }))).overwrites).toEqual([])
    // An operator deletes it, with what a person has saved.
    await recordEdit(second.organizationId, 'webhook_source.saved', second.id, 'Ada', ['description'])
    await deleteWebhookSource(db, second.organizationId, second.id)
    expect((await plan(withSource())).overwrites).toEqual([])
    // No manifest had it.
    await saveSource(first.organizationId, newId(), { name: 'By hand' })
    const [byHand] = (await plan(withSource({ name: 'By hand' }))).webhookSources
    await deleteSaved({ ...first, id: byHand!.id })
    expect((await plan(withSource({ name: 'By hand' }))).overwrites).toEqual([])
  })
})

test('the audit log gets an event for each thing that was created or changed, and none when nothing changed', async () => {
  await apply(manifest)
  const names = (await appliedEvents()).map(({ kind, name }) => (kind === 'session' ? kind : `${kind} ${name}`))
  const users = ['user ada@acme.test', 'user bob@acme.test']
  const workflows = ['workflow Forward', 'workflow Idle']
  expect(names.toSorted()).toEqual(['api_key ci', 'organization Acme', 'session', 'session', ...users, ...workflows])
  await apply(manifest)
  expect(await appliedEvents()).toHaveLength(8)
  await apply(withWorkflow({ description: 'x'.repeat(50_000) }))
  expect(await appliedEvents()).toHaveLength(9)
  expect(await appliedEvents()).toContainEqual({
    kind: 'workflow',
    name: 'Forward',
    changes: [{ field: 'description', old: 'Send the order to Order intake.', new: `${'x'.repeat(2_000)}…` }],
  })
})
