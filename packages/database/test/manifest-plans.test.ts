import { beforeEach, describe, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { newId } from '../src/connection/ids.ts'
import {
  type AppliedManifest,
  type ApplyOptions,
  applyManifests,
  ManifestOverwriteError,
} from '../src/manifest/apply-manifests.ts'
import { toManifest } from '../src/manifest/manifest-errors.ts'
import { createSecretBox, type SecretBox } from '../src/sources/secrets.ts'
import { saveWebhookSource } from '../src/sources/index.ts'

const database = useTestDatabase()
beforeEach(async () => {
  await database.db.pool.query('DELETE FROM organizations')
  await database.db.pool.query('DELETE FROM audit_events')
})

const trigger = { name: 'Shop', trigger_source: { slug: 'api', name: 'API' } }
const workflow = {
  name: 'Forward',
  description: 'Send it.',
  users: ['ada@acme.test'],
  triggers: [trigger],
  files: [{ name: 'a.md', path: ['docs'], content: 'one' }],
}
const source = {
  name: 'Orders',
  description: 'Takes orders.',
  endpoint_url: 'https://acme.example/orders',
  signing_secret: 'a secret',
  example_request_body: { id: 'A-1', total: 1.5 },
}
const manifest = {
  organization: { name: 'Acme' },
  users: [{ email: 'ada@acme.test', first_name: 'Ada' }, { email: 'bob@acme.test' }],
  api_keys: [{ name: 'ci' }],
  workflows: [workflow, { name: 'Idle' }],
  sessions: [{ open: true }],
}
const acme = (fields: object) => ({ organization: { name: 'Acme', ...fields } })
const withWorkflow = (changes: object) => ({ ...manifest, workflows: [{ ...workflow, ...changes }, { name: 'Idle' }] })
const scheduled = (frequency: string) => withWorkflow({ auto_run: { enabled: true, frequency } })

const apply = async (value: object, options: ApplyOptions = {}): Promise<AppliedManifest> =>
  (await applyManifests(database.db, [toManifest(value)], options))[0]!
const plan = async (value: object, options: ApplyOptions = {}) => await apply(value, { ...options, isDryRun: true })

const forwardOf = ({ organization, workflows: [forward] }: AppliedManifest) => ({
  organizationId: organization.id,
  id: forward!.id,
})
const withSource = (changes: object = {}) => ({
  organization: { name: 'Acme' },
  webhook_sources: [{ ...source, ...changes }],
})
const planSecret = async (secret: string | null | undefined, secrets: SecretBox | undefined) =>
  (await plan(withSource({ signing_secret: secret }), { secrets })).webhookSources[0]?.changes
const secretChange = (value: string | null) => [{ field: 'signing_secret', old: 'set', new: value }]

/** Records what the application records when a person changes something. */
async function recordEdit(
  organizationId: string,
  action: string,
  targetId: string,
  by = 'Ada',
  fields: readonly string[] = [],
): Promise<string> {
  const found = await database.db.pool.query<{ id: string }>('SELECT max(id::text) AS id FROM audit_events')
  let id = newId()
  // Ids of the same millisecond have no order.
  while (id <= (found.rows[0]?.id ?? '')) id = newId()
  await database.db.pool.query(
    `INSERT INTO audit_events (id, organization_id, actor_kind, actor_id, actor_name, action, target_kind, target_id, changes)
     VALUES ($1, $2, 'person', $3, $4, $5, $6, $7, $8)`,
    [
      id,
      organizationId,
      newId(),
      by,
      action,
      action.split('.')[0],
      targetId,
      JSON.stringify(fields.map((field) => ({ field, old: 1, new: 2 }))),
    ],
  )
  return id
}

async function appliedEvents() {
  const found = await database.db.pool.query(
    `SELECT target_kind AS kind, target_name AS name, changes FROM audit_events
     WHERE action = 'manifest.applied' AND actor_kind = 'operator' ORDER BY id`,
  )
  return found.rows as { kind: string; name: string; changes: object[] }[]
}

describe('the plan of a manifest', () => {
  test('lists the old and the new value of each field', async () => {
    await apply(manifest)
    const changed = {
      ...withWorkflow({
        description: 'Send it twice.',
        auto_run: { enabled: true, frequency: 'daily' },
        users: ['bob@acme.test'],
        triggers: [
          { ...trigger, is_active: false },
          { ...trigger, name: 'Second' },
        ],
        files: [{ name: 'a.md', path: ['docs'], content: 'two' }],
      }),
      organization: { name: 'Acme', suspended: true },
      users: [{ email: 'ada@acme.test', first_name: 'Ada M.' }, { email: 'bob@acme.test' }],
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
      { field: 'description', old: 'Send it.', new: 'Send it twice.' },
      { field: 'auto_run.enabled', old: null, new: true },
      { field: 'auto_run.frequency', old: null, new: 'daily' },
      { field: 'users', old: 'ada@acme.test', new: null },
      { field: 'users', old: null, new: 'bob@acme.test' },
      { field: 'triggers.Shop.is_active', old: true, new: false },
      { field: 'triggers.Second', old: null, new: expect.objectContaining({ name: 'Second', is_active: true }) },
      {
        field: 'files.docs/a.md.content',
        old: expect.stringMatching(/^SHA-256 /),
        new: expect.stringMatching(/^SHA-256 /),
      },
    ])
    const applied = await apply(changed)
    expect(applied.workflows).toMatchObject(planned.workflows.map(({ id, outcome }) => ({ id, outcome })))
    expect((await plan(changed)).workflows.map(({ outcome }) => outcome)).toEqual(['unchanged', 'unchanged'])
  })

  test('undoes the deletion of a workflow whose runs are still being deleted', async () => {
    const [forward] = (await apply(manifest)).workflows
    await database.db.pool.query('UPDATE workflows SET deleted_at = now() WHERE id = $1', [forward?.id])
    const [again] = (await apply(manifest)).workflows
    expect(again).toMatchObject({ outcome: 'changed', changes: [{ field: 'deleted', old: true, new: false }] })
    expect(await database.db.prisma.workflow.count({ where: { deletedAt: null } })).toBe(2)
  })

  describe('of a webhook source', () => {
    const box = createSecretBox([Buffer.alloc(32, 1).toString('base64')])
    const save = async (secrets: SecretBox = box) => {
      const { organization, webhookSources } = await apply(withSource())
      const owner = { organizationId: organization.id, sourceId: webhookSources[0]!.id }
      await saveWebhookSource(
        database.db,
        owner.organizationId,
        owner.sourceId,
        {
          name: source.name,
          description: source.description,
          endpointUrl: source.endpoint_url,
          signingSecret: secrets.encrypt(owner, source.signing_secret),
          exampleRequestBody: { total: 1.5, id: 'A-1' },
          isVerified: true,
          approval: undefined,
        },
        null,
      )
    }

    test('compares like the dispatcher: the order of the fields of an example does not count', async () => {
      expect((await plan(withSource())).webhookSources).toMatchObject([{ outcome: 'created', changes: [], version: 0 }])
      await save()
      expect((await plan(withSource(), { secrets: box })).webhookSources).toMatchObject([
        { outcome: 'unchanged', changes: [], version: 1 },
      ])
      const changed = withSource({ endpoint_url: 'https://acme.example/new', example_request_body: { id: 'A-1' } })
      expect((await plan(changed, { secrets: box })).webhookSources[0]?.changes).toEqual([
        { field: 'endpoint_url', old: source.endpoint_url, new: 'https://acme.example/new' },
        { field: 'example_request_body', old: source.example_request_body, new: { id: 'A-1' } },
      ])
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
    expect((refused as ManifestOverwriteError).refused).toEqual([
      {
        kind: 'workflow',
        id,
        name: 'Forward',
        eventId,
        action: 'trigger.saved',
        by: 'Ada',
        at: expect.any(Date),
        count: 2,
      },
    ])
    expect((await plan(changed)).overwrites).toHaveLength(1)
    const newer = await recordEdit(organizationId, 'workflow.saved', id)
    await expect(apply(changed, { overwrite: new Set([eventId]) })).rejects.toBeInstanceOf(ManifestOverwriteError)
    expect((await apply(changed, { overwrite: new Set([newer]) })).workflows[0]).toMatchObject({ outcome: 'changed' })
    expect((await apply(manifest)).overwrites).toEqual([])
  })

  test('stays protected while other things of the organization are applied', async () => {
    const { organizationId, id } = forwardOf(await apply(manifest))
    await recordEdit(organizationId, 'workflow.saved', id)
    await apply({ organization: { name: 'Acme' }, workflows: [{ name: 'Other' }] })
    await expect(apply(withWorkflow({ description: 'Another.' }))).rejects.toBeInstanceOf(ManifestOverwriteError)
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
    await database.db.pool.query('UPDATE organizations SET month_budget = 9e6 WHERE id = $1', [id])
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
    const withKey = (key: object) => ({ ...manifest, api_keys: [{ name: 'ci', ...key }] })
    const { organization, apiKeys } = await apply(manifest)
    await database.db.pool.query('UPDATE api_keys SET revoked_at = now()')
    await recordEdit(organization.id, 'api_key.revoked', apiKeys[0]!.id)
    await apply(withKey({}))
    await expect(apply(withKey({ revoked: false }))).rejects.toBeInstanceOf(ManifestOverwriteError)
  })

  test.each(['workflow.started', 'workflow_users.listed'])('is not %s, which changes nothing', async (action) => {
    const { organizationId, id } = forwardOf(await apply(manifest))
    await recordEdit(organizationId, action, id)
    expect((await apply(withWorkflow({ description: 'Another.' }))).overwrites).toEqual([])
  })

  test('is also a deleted workflow', async () => {
    const { organizationId, id } = forwardOf(await apply(manifest))
    await database.db.pool.query('DELETE FROM workflows WHERE id = $1', [id])
    await recordEdit(organizationId, 'workflow.deleted', id)
    expect((await plan(manifest)).overwrites).toMatchObject([{ action: 'workflow.deleted', name: 'Forward' }])
  })
})

describe('the audit log', () => {
  test('gets an event for each thing that was created or changed, and none when nothing changed', async () => {
    await apply(manifest)
    expect((await appliedEvents()).map(({ kind, name }) => `${kind} ${name}`).toSorted()).toEqual([
      'api_key ci',
      'organization Acme',
      expect.stringMatching(/^session /),
      'user ada@acme.test',
      'user bob@acme.test',
      'workflow Forward',
      'workflow Idle',
    ])
    await apply(manifest)
    expect(await appliedEvents()).toHaveLength(7)
    await apply(withWorkflow({ description: 'x'.repeat(50_000) }))
    expect(await appliedEvents()).toHaveLength(8)
    expect(await appliedEvents()).toContainEqual({
      kind: 'workflow',
      name: 'Forward',
      changes: [{ field: 'description', old: 'Send it.', new: `${'x'.repeat(2_000)}…` }],
    })
  })
})
