import { createApiKey, newId, prefixOfApiKey } from '@workflow-service/database'
import { mcpHandler, startCustomerEndpoint } from '@workflow-service/testkit'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { orderIntakeSource, useCliEnvironment } from './support/cli-environment.ts'
import { failure, wf } from './support/wf.ts'

type Endpoint = Awaited<ReturnType<typeof startCustomerEndpoint>>

const environment = useCliEnvironment()
const run = async (...args: string[]) => await wf(environment.env, args)
let endpoint: Endpoint

beforeEach(async () => {
  endpoint = await startCustomerEndpoint()
})
afterEach(async () => {
  await endpoint.close()
  await environment.clear()
})

const source = (changes: object = {}) =>
  orderIntakeSource(endpoint.url, {
    signing_secret: 'a signing secret',
    example_request_body: { order_id: 'A-1', total: 1.5 },
    ...changes,
  })
const manifest = (...sources: object[]) => ({
  organization: { name: 'Acme' },
  users: [{ email: 'ada@acme.test' }],
  api_keys: [{ name: 'ci' }],
  webhook_sources: sources,
  workflows: [{ name: 'Forward', users: ['ada@acme.test'] }],
})
const apply = async (value: object | string, ...more: string[]) =>
  await run('apply', await environment.writeFile('manifest.yaml', value), '--json', ...more)
const applyText = async (value: object, args: string[] = [], options: Parameters<typeof wf>[2] = {}) =>
  await wf(environment.env, ['apply', await environment.writeFile('manifest.json', value), ...args], options)
const applyLookups = async (...lookups: object[]) => {
  const { exitStatus, json } = await apply({ organization: { name: 'Acme' }, lookups })
  const result = json() as { organization_id: string; lookups: { outcome: string; error?: object }[] }
  return { exitStatus, id: result.organization_id, lookups: result.lookups }
}
const sourcesOf = (json: unknown) => (json as { webhook_sources: object[] }).webhook_sources

describe('wf apply', () => {
  test('warns of a subagent source that names no webhook source, and suggests the one that is meant', async () => {
    const subagent_sources = ['ORDER INTAKE', 'Order intak'].map((name) => ({ name, type: 'api' }))
    const triggers = [{ trigger_source: { slug: 'api', name: 'API' }, subagent_sources }]
    const workflow = { description: 'Send it to Order intake.', triggers }
    const { exitStatus, stdout } = await applyText(withWorkflow(workflow, { verify: false }), ['--dry-run'])
    expect(exitStatus).toBe(0)
    expect(stdout.match(/The subagent source .*/g)).toEqual([
      'The subagent source "Order intak" is no webhook source; did you mean "Order intake"?',
    ])
  })

  test('refuses values that neither it knows nor the organization has, and names all of them', async () => {
    const trigger_source = { slug: 'API', name: 'API' }
    const file = await environment.writeFile('misspelled.json', {
      organization: { name: 'Acme' },
      workflows: [
        {
          name: 'Forward',
          scope: 'company-wide',
          triggers: [{ trigger_source, subagent_sources: [{ name: 'R', type: 'platform_intrenal' }] }],
        },
        { name: 'Other', scope: 'team', triggers: [{ trigger_source: { slug: 'crm', name: 'CRM' } }] },
      ],
    })
    const { exitStatus, stderr } = await run('apply', file, '--dry-run')
    expect(exitStatus).toBe(1)
    expect(stderr.match(/\S+: is "\S+"; did you mean \w+\?/g)).toEqual([
      'workflows[0].scope: is "company-wide"; did you mean company_wide?',
      'workflows[0].triggers[0].trigger_source.slug: is "API"; did you mean api?',
      'workflows[0].triggers[0].subagent_sources[0].type: is "platform_intrenal"; did you mean platform_internal?',
    ])
    expect(stderr).toContain('workflows[1].scope: is "team", which is unknown; known: company_wide, only_me')
    expect(stderr).toContain('workflows[1].triggers[0].trigger_source.slug: is "crm", which is unknown; known: api')
    // As the application, or an earlier release, may have stored them.
    expect(await run('apply', file, '--allow-unknown')).toMatchObject({ exitStatus: 0 })
    expect(await run('apply', file, '--dry-run')).toMatchObject({ exitStatus: 0 })
  })

  test('creates an organization from YAML, and prints its ids and, only the first time, its new key', async () => {
    const file = await environment.writeFile(
      'acme.yaml',
      `# Acme
organization: { name: Acme }
api_keys: [ { name: ci } ]
webhook_sources:
  - name: Order intake
    description: Takes orders.
    endpoint_url: ${endpoint.url}/orders
    example_request_body: { order_id: A-1 }
workflows:
  - name: Forward
    triggers: [ { trigger_source: { slug: api, name: API } } ]
`,
    )
    const first = await run('apply', file, '--json')
    expect(first).toMatchObject({ exitStatus: 0, stderr: '' })
    expect(first.json()).toMatchObject({
      organization_id: '92c5fadb-f3dd-536f-8c0a-7e2b85c8b9ab',
      api_keys: [{ name: 'ci', key: expect.stringMatching(/^wfk_/), prefix: expect.stringMatching(/^wfk_.{8}$/) }],
      workflows: [{ id: expect.any(String), name: 'Forward' }],
      webhook_sources: [{ id: expect.any(String), name: 'Order intake', outcome: 'created', verified: true }],
    })
    const second = await run('apply', file, '--json')
    expect(second.json()).toMatchObject({ api_keys: [{ name: 'ci', outcome: 'unchanged' }] })
    expect(second.stdout).not.toContain('"key"')
  })

  test('stores a given key and prints what it created', async () => {
    const { key } = createApiKey()
    const { stdout, exitStatus } = await applyText({ organization: { name: 'Acme' }, api_keys: [{ name: 'ci', key }] })
    expect(exitStatus).toBe(0)
    expect(stdout).toMatch(/^\+ organization {2}Acme {2}92c5fadb-f3dd-536f-8c0a-7e2b85c8b9ab\n\+ API key {2}ci {2}/)
    expect(stdout).toContain(`\n    ${key}\n\nNew: 2, changed: 0, unchanged: 0.\n`)
  })

  test('sends no verification request when nothing changed, and keeps a secret that the manifest leaves out', async () => {
    const first = await apply(manifest(source({ name: ' Order intake ' })))
    expect(sourcesOf(first.json())).toMatchObject([{ name: 'Order intake', outcome: 'created' }])
    for (const changes of [{}, { signing_secret: undefined }]) {
      const again = await apply(manifest(source(changes)))
      expect(sourcesOf(again.json())).toMatchObject([{ outcome: 'unchanged', verified: true }])
    }
    expect(endpoint.requests).toHaveLength(1)
  })

  test('applies everything else when an endpoint does not confirm, shows the reason, and exits with 1', async () => {
    endpoint.answerWith((request) => ({ status: request.path === '/no' ? 401 : 204 }))
    const refused = source({ name: 'Refuser', endpoint_url: `${endpoint.url}/no` })
    const { exitStatus, json } = await apply(manifest(refused, source()))
    expect(exitStatus).toBe(1)
    expect(sourcesOf(json())).toMatchObject([
      { name: 'Refuser', outcome: 'failed', verified: false, error: { code: 'verification_failed', reason: 'status' } },
      { name: 'Order intake', outcome: 'created' },
    ])
    expect(json()).toMatchObject({ workflows: [{ outcome: 'created' }] })
    const text = await applyText(manifest(refused))
    expect(text.stdout).toMatch(/✗ webhook source {2}Refuser .*\n {4}The endpoint answered 401[^]*, failed: 1\.\n/)
  })

  test('lists errors of shape, of rules, of users and of addresses at once, and writes nothing', async () => {
    const value = manifest(source(), source({ name: 'Inside', endpoint_url: 'http://10.0.0.1/orders' }))
    const content = 'deliveries: [{ to: Order intake, when: 1 + true }]'
    value.workflows.push({ name: 'Ruled', users: ['eve@acme.test'], files: [{ name: 'rules.yaml', content }] } as never)
    const broken = { ...value, workflows: [{ name: 7 }, ...value.workflows], sessions: [{ open: 'yes' }] }
    const { exitStatus, stderr } = await apply(broken)
    expect(exitStatus).toBe(1)
    const { faults } = (JSON.parse(stderr) as { error: { faults: { path: string }[] } }).error
    expect(faults.map(({ path }) => path)).toEqual([
      'workflows[0].name',
      'sessions[0].open',
      'workflows[2].files[0].content',
      'workflows[2].users[0]',
      'webhook_sources[1].endpoint_url',
    ])
    expect(endpoint.requests).toHaveLength(0)
    expect(await environment.db.prisma.organization.count()).toBe(0)
  })

  test('stores a source with verify: false without a request, and warns each time', async () => {
    for (const outcome of ['created', 'unchanged']) {
      const { exitStatus, stderr, json } = await apply(manifest(source({ verify: false })))
      expect(exitStatus).toBe(0)
      expect(stderr).toContain('Warning: Order intake was stored without a verification request')
      expect(sourcesOf(json())).toMatchObject([{ outcome, verified: false }])
    }
    expect(endpoint.requests).toHaveLength(0)
    const verified = await apply(manifest(source({ verify: true })))
    expect(sourcesOf(verified.json())).toMatchObject([{ outcome: 'changed', verified: true }])
    expect(endpoint.requests).toHaveLength(1)
    const both = await apply(manifest(source({ verify: false }), source({ verify: false, name: 'Other' })))
    const [one, two] = sourcesOf(both.json()) as { id: string }[]
    const swapped = [source({ id: one?.id, name: 'Other', verify: false }), source({ id: two?.id, verify: false })]
    const refused = await apply(manifest(...swapped), '--dry-run')
    expect(refused.exitStatus).toBe(1)
    expect(refused.stderr.match(/webhook_sources\[\d\]\.name: is the name of [^.]*exchanged at once/g)).toHaveLength(2)
  })

  test('gives a name to another source after the one that has it got a new one, in any order', async () => {
    const names = Array.from({ length: 10 }, (_, index) => `Source ${index}`)
    const first = await apply(manifest(...names.map((name) => source({ name, verify: false }))))
    const ids = (sourcesOf(first.json()) as { id: string }[]).map(({ id }) => id)
    const renamed = [
      ...ids.map((id, index) => source({ id, name: `Source ${index + 1}`, verify: false })),
      source({ name: 'Source 0', verify: false }),
    ]
    expect((await apply(manifest(...renamed), '--dry-run')).exitStatus).toBe(0)
    const second = await apply(manifest(...renamed))
    const outcomes = [
      ...ids.map((id, index) => ({ id, name: `Source ${index + 1}`, outcome: 'changed' })),
      { outcome: 'created' },
    ]
    expect(sourcesOf(second.json())).toMatchObject(outcomes)
    const again = await apply(manifest(...renamed))
    expect(sourcesOf(again.json())).toMatchObject(renamed.map(() => ({ outcome: 'unchanged' })))
    const tools = [{ name: 'me', path: '/' }]
    const lookup = (name: string, id?: string) => ({ name, id, kind: 'http', url: endpoint.url, tools })
    const [a, b] = [newId(), newId()]
    await applyLookups(lookup('A', a), lookup('B', b))
    const moved = await applyLookups(lookup('B', a), lookup('C', b), lookup('A'))
    expect(moved.lookups.map(({ outcome }) => outcome)).toEqual(['changed', 'changed', 'created'])
    const lookups = [lookup('C', a), lookup('B', b)]
    const exchanged = await apply({ organization: { name: 'Acme' }, lookups }, '--dry-run')
    expect(exchanged.stderr).toContain('exchanged at once')
  })

  test('connects look-ups with the tools that are allowed, keeps a secret that it leaves out, and exports them', async () => {
    const inputSchema = { type: 'object' }
    const search = { name: 'search', description: 'Searches.', inputSchema, annotations: { readOnlyHint: true } }
    const listTools = () => [search, { name: 'remove', inputSchema }]
    await using server = await startCustomerEndpoint({ answer: mcpHandler(listTools, () => ({ content: [] })) })
    const find = { name: 'find', path: '/{id}', parameters: { type: 'object', properties: { id: { type: 'string' } } } }
    const http = { name: 'Customers', kind: 'http', url: endpoint.url, header_name: 'X-Key', tools: [find] }
    const mcp = { name: 'Directory', kind: 'mcp', url: `${server.url}/mcp`, tools: [{ name: 'search' }] }
    const stored = async () =>
      (await environment.db.pool.query('SELECT tools, header_value FROM lookups ORDER BY name')).rows

    const first = await applyLookups({ ...http, header_value: 'a secret' }, mcp)
    expect(first.lookups.map(({ outcome }) => outcome)).toEqual(['created', 'created'])
    const [customers, directory] = await stored()
    expect(directory.tools).toEqual([{ name: 'search', description: 'Searches.', parameters: { type: 'object' } }])
    expect((await applyLookups(http, mcp)).lookups.map(({ outcome }) => outcome)).toEqual(['unchanged', 'unchanged'])
    const described = { ...http, tools: [{ ...find, description: 'Finds.' }] }
    const refused = await applyLookups(described, { ...mcp, tools: [{ name: 'remove' }] })
    expect(refused).toMatchObject({ exitStatus: 1, lookups: [{ outcome: 'changed' }, { outcome: 'failed' }] })
    expect(JSON.stringify(refused.lookups[1]?.error)).toContain('may change something')
    const after = await stored()
    expect([after[0].header_value, after[1].tools]).toEqual([customers.header_value, directory.tools])
    const exported = await run('export', first.id)
    expect(exported.stdout).toContain('name: Directory')
    expect(exported.stdout).not.toContain('a secret')
    const again = await environment.writeFile('exported.yaml', exported.stdout)
    const { stdout } = await run('apply', again, '--dry-run')
    expect(stdout).toMatch(/^= look-up {2}Customers.*\n= look-up {2}Directory/m)
  })

  test('applies everything else when the dispatcher is unavailable, and reports it', async () => {
    const file = await environment.writeFile('manifest.yaml', manifest(source()))
    const env = { ...environment.env, DISPATCHER_URL: 'http://127.0.0.1:1' }
    const { exitStatus, stdout } = await wf(env, ['apply', file])
    expect(exitStatus).toBe(1)
    expect(stdout).toMatch(
      /✗ webhook source {2}Order intake .*\n {4}The dispatcher at http:\/\/127.0.0.1:1 does not answer/,
    )
    expect(await environment.db.prisma.workflow.count()).toBe(1)
  })

  test('prints a new key also when the database fails after it is stored: no other apply shows it', async () => {
    const rename = (from: string, to: string) => environment.db.pool.query(`ALTER TABLE ${from} RENAME TO ${to}`)
    endpoint.answerWith(async () => {
      await rename('audit_events', 'missing_events')
      return { status: 204 }
    })
    const { key } = createApiKey()
    const failed = await apply({ ...manifest(source()), api_keys: [{ name: 'ci' }, { name: 'given', key }] })
    await rename('missing_events', 'audit_events')
    expect(failed).toMatchObject(failure('"message"'))
    const stored = await environment.db.prisma.apiKey.findFirst({ where: { name: 'ci' } })
    const [, shown = ''] = /^Warning: API key ci was created: (\S+)$/m.exec(failed.stderr) ?? []
    expect(prefixOfApiKey(shown)).toBe(stored?.prefix)
    expect(failed.stderr).not.toContain(key)
  })
})

describe('wf apply writes nothing and exits with 1', () => {
  test('when a manifest has errors, and names each with its file, path and line, in the order of the file', async () => {
    const good = await environment.writeFile('good.yaml', { organization: { name: 'Good' } })
    const bad = await environment.writeFile(
      'bad.yaml',
      'workflows:\n  - name: A\n    triggers:\n      - trigger_source: { name: API }\nusers:\n  - email: ada\norganization: {}\n',
    )
    const { exitStatus, stderr } = await run('apply', good, bad)
    expect(exitStatus).toBe(1)
    expect(stderr.match(/bad\.yaml: .*/g)).toEqual([
      'bad.yaml: workflows[0].triggers[0].trigger_source.slug: is missing  (line 4)',
      'bad.yaml: users[0].email: must be an email address such as ada@acme.test  (line 6)',
      'bad.yaml: organization.name: is missing  (line 7)',
    ])
    expect(await environment.db.prisma.organization.count()).toBe(0)
  })

  test.each([[''], [' '], ['\u200b'], ['x'.repeat(201)]])(
    'when the organization of --organization is %j, which is no name',
    async (name) => {
      const file = await environment.writeFile('named.json', { organization: { name: 'Acme' } })
      const applied = await wf(environment.env, ['apply', file, '--organization', name])
      expect(applied).toMatchObject(failure('The name must have 1 to 200 characters, one of them visible.', 2))
      expect(await environment.db.prisma.organization.count({ where: { name } })).toBe(0)
    },
  )

  test('when it needs the dispatcher and its settings are missing', async () => {
    const file = await environment.writeFile('manifest.yaml', manifest(source()))
    const message = /DISPATCHER_URL is missing.*\n.*INTERNAL_API_TOKEN is missing/
    expect(await wf({ DATABASE_URL: environment.env.DATABASE_URL }, ['apply', file])).toMatchObject(failure(message))
    expect(await environment.db.prisma.organization.count()).toBe(0)
  })

  test('when a file cannot be read', async () => {
    const message = 'Error: no-such-file.yaml cannot be read: there is no such file.\n'
    expect(await run('apply', 'no-such-file.yaml')).toMatchObject(failure(message))
  })
})

const withWorkflow = (workflow: object, sourceChanges: object = {}) => ({
  ...manifest(source(sourceChanges)),
  workflows: [{ name: 'Forward', ...workflow }],
})
const rules = (content: string) => ({ files: [{ name: 'rules.yaml', content }] })

describe('the workflows of a manifest', () => {
  test('have warnings about what the built-in agent cannot follow, which do not fail the command', async () => {
    const value = withWorkflow({ description: 'Only if it is paid, send it to Order intake.' })
    const where = { workflow: 'Forward', path: 'workflows[0].description' }
    const warnings = [{ ...where, code: 'rules_needed', excerpt: expect.any(String) }]
    for (const flags of [['--dry-run'], []]) {
      const { exitStatus, json } = await apply(value, ...flags)
      expect(exitStatus).toBe(0)
      expect(json()).toMatchObject({ warnings })
    }
    const file = await environment.writeFile('warned.json', value)
    const { stdout } = await run('apply', file)
    expect(stdout).toMatch(/\nWarning: .*warned\.json, line 1: Forward: .*built-in agent.*rules\.yaml/)
    const trigger = { trigger_source: { slug: 'api', name: 'API' }, input_message: 'Only if it is paid:' }
    const triggers = [{ ...trigger, is_active: false, input_message: '' }, trigger]
    const withMessage = withWorkflow({ description: 'Send it to Order intake.', triggers })
    expect((await apply(withMessage, '--dry-run')).json()).toMatchObject({
      warnings: [{ code: 'rules_needed', excerpt: 'Only if it is paid:' }],
    })
    const withModel = withWorkflow({ description: 'Only if it is paid, send it to Order intake.', model: 'fast' })
    expect((await apply(withModel, '--dry-run')).json()).toMatchObject({ warnings: [] })
    // Rules can name stored sources, and leave nothing to warn of.
    const workflows = [{ name: 'Forward', ...rules('deliveries: [{ to: order INTAKE, when: "size(context) > 3" }]') }]
    const ruled = await apply({ ...manifest(), workflows })
    expect(ruled).toMatchObject({ exitStatus: 0 })
    expect(ruled.json()).toMatchObject({ warnings: [] })
    // Each run would fail, also with the example of a stored source.
    const foreign = rules('deliveries: [{ to: order INTAKE, payload: { ordr: "1" } }]')
    const message = expect.stringMatching(/line 1, .*payload\.ordr: is not in the example; the fields here are "/)
    for (const each of [withWorkflow(foreign), { ...manifest(), workflows: [{ name: 'Forward', ...foreign }] }]) {
      const warned = [{ code: 'rules_invalid', path: 'workflows[0].files[0].content', message }]
      expect((await apply(each, '--dry-run')).json()).toMatchObject({ warnings: warned })
    }
    const executed = withWorkflow({ ...foreign, model: 'fast' })
    expect((await apply(executed, '--dry-run')).json()).toMatchObject({ warnings: [] })
  })

  test('have no warning of a source that another file, or the database in another case, has too', async () => {
    const value = described('Send it to Order intake.', { verify: false })
    const named = described('Send it to Order intake.', { verify: false, name: 'order INTAKE' })
    const file = await environment.writeFile('other.json', value)
    expect((await apply(value, file)).json()).toMatchObject([{ warnings: [] }, { warnings: [] }])
    expect((await apply(named)).json()).toMatchObject({ warnings: [] })
  })

  test('are refused with each error of their rules, and nothing is written', async () => {
    const content = 'deliveries:\n  - to: Order intak'
    const first = await apply(withWorkflow(rules(content)))
    expect(first.exitStatus).toBe(1)
    expect(first.stderr).toContain(
      'workflows[0].files[0].content: rules.yaml, line 2, delivery 1, to: there is no webhook source',
    )
    expect(first.stderr).toContain('did you mean \\"Order intake\\"?')
    const second = await apply(withWorkflow(rules('deliveries:\n  - to: Order intake\n    when: 1 + true')))
    expect(second.stderr).toContain('line 3, delivery 1, when: + cannot be used with int and bool')
    expect(endpoint.requests).toEqual([])
  })
})

interface Ids {
  organization_id: string
  workflows: { id: string }[]
  webhook_sources: { id: string }[]
}

const described = (description: string, sourceChanges: object = {}) => withWorkflow({ description }, sourceChanges)
const descriptionInDatabase = async () => (await environment.db.prisma.workflow.findFirstOrThrow()).description

async function changeInApplication(kind: string, organizationId: string, id: string): Promise<void> {
  await environment.db.pool.query(
    `INSERT INTO audit_events
       (id, organization_id, at, actor_kind, actor_id, actor_name, action, target_kind, target_id, changes)
     VALUES ($1, $2, '2026-05-04T03:02:01Z', 'person', $3, 'Ada Lovelace', $4, $5, $6,
       '[{"field": "description", "old": "", "new": "Ada''s."}]')`,
    [newId(), organizationId, newId(), `${kind}.saved`, kind, id],
  )
}

describe('wf apply --dry-run', () => {
  test('shows old and new values, writes nothing, sends nothing and needs no dispatcher', async () => {
    await applyText(described('Send it to Order intake.'))
    const changed = {
      ...described('Post it to Order intake.', { signing_secret: 'second secret' }),
      users: [{ email: 'ada@acme.test', first_name: 'Ada' }, { email: 'bob@acme.test' }],
    }
    const file = await environment.writeFile('changed.json', changed)
    const { DATABASE_URL, SECRETS_KEY } = environment.env
    const { stdout, exitStatus } = await wf({ DATABASE_URL, SECRETS_KEY }, ['apply', file, '--dry-run'])
    expect(exitStatus).toBe(0)
    expect(stdout.replaceAll(/ {2}[0-9a-f-]{36}/g, '')).toBe(`= organization  Acme
~ user  ada@acme.test
    first_name: "" → "Ada"
+ user  bob@acme.test
= API key  ci
~ webhook source  Order intake
    signing_secret: "set" → "another secret"
~ workflow  Forward
    description: "Send it to Order intake." → "Post it to Order intake."

New: 1, changed: 3, unchanged: 2.
Nothing was written, because of --dry-run.
`)
    expect(await descriptionInDatabase()).toBe('Send it to Order intake.')
    expect(endpoint.requests).toHaveLength(1)
  })

  test('prints JSON without any key or secret', async () => {
    const { stdout, json } = await applyText(described('Send it.'), ['--dry-run', '--json'])
    expect(json()).toMatchObject({
      dry_run: true,
      organization: { name: 'Acme', outcome: 'created', changes: [] },
      api_keys: [{ name: 'ci', outcome: 'created' }],
      webhook_sources: [{ name: 'Order intake', outcome: 'created' }],
      workflows: [{ name: 'Forward', outcome: 'created' }],
      overwrites: [],
    })
    expect(stdout).not.toMatch(/"key"|a signing secret/)
  })

  test('shows the difference of long texts', async () => {
    await applyText(described(`${'a'.repeat(500)} old end`))
    const { stdout } = await applyText(described(`${'a'.repeat(500)} new end`), ['--dry-run'])
    expect(stdout).toMatch(/description: …a+ old end" → …a+ new end"\n/)
  })
})

describe('wf apply over changes of people', () => {
  let ids: Ids
  beforeEach(async () => {
    await environment.db.pool.query('DELETE FROM audit_events')
    ids = (await applyText(described('First.'), ['--json'])).json() as Ids
    await changeInApplication('workflow', ids.organization_id, ids.workflows[0]!.id)
  })

  test('applies nothing without a terminal, and says who changed what, when, and what to do', async () => {
    const { exitStatus, stdout, stderr } = await applyText(described('Second.'))
    expect({ exitStatus, stdout }).toEqual({ exitStatus: 1, stdout: '' })
    expect(stderr).toContain(
      'workflow Forward: changed in the application by Ada Lovelace, 2026-05-04 03:02:01 UTC (workflow.saved)\n',
    )
    expect(stderr).toContain(
      'See the plan with --dry-run. Take the changes over with wf export, or overwrite them with --yes.',
    )
    expect(await descriptionInDatabase()).toBe('First.')
    const inJson = await applyText(described('Second.'), ['--json'])
    const overwrite = { kind: 'workflow', name: 'Forward', by: 'Ada Lovelace', at: '2026-05-04T03:02:01.000Z' }
    expect(JSON.parse(inJson.stderr)).toMatchObject({ error: { overwrites: [overwrite] } })
  })

  test('overwrites them with --yes, and reports that', async () => {
    const { exitStatus, json } = await applyText(described('Second.'), ['--yes', '--json'])
    expect(exitStatus).toBe(0)
    expect(json()).toMatchObject({ overwrites: [{ kind: 'workflow', by: 'Ada Lovelace' }] })
    expect(await descriptionInDatabase()).toBe('Second.')
    expect((await applyText(described('Third.'))).exitStatus).toBe(0)
  })

  test.each([
    ['y', 0, 'Second.'],
    ['', 1, 'First.'],
  ])('shows the plan on a terminal and asks: the answer "%s"', async (answer, exitStatus, description) => {
    const questions: string[] = []
    const ask = async (question: string) => {
      questions.push(question)
      return await Promise.resolve(answer)
    }
    const result = await applyText(described('Second.'), [], { ask })
    expect(result.exitStatus).toBe(exitStatus)
    expect(result.stderr).toMatch(
      /description: "First\." → "Second\."\n {4}! changed in the application by Ada Lovelace/,
    )
    expect(questions).toEqual(['Overwrite this change that people made in the application? [y/N] '])
    expect(await descriptionInDatabase()).toBe(description)
  })

  test('protects webhook sources too, and records that an operator saved them', async () => {
    await changeInApplication('webhook_source', ids.organization_id, ids.webhook_sources[0]!.id)
    const changed = described('First.', { description: 'Other.' })
    expect((await applyText(changed)).stderr).toContain('webhook source Order intake: changed in the application')
    expect((await applyText(changed, ['--yes'])).exitStatus).toBe(0)
    expect((await applyText(described('First.', { description: 'Another.' }))).exitStatus).toBe(0)
    const events = await environment.db.pool.query(
      `SELECT changes FROM audit_events WHERE target_kind = 'webhook_source' AND action = 'manifest.applied' ORDER BY at`,
    )
    expect(events.rows.map((row: { changes: object[] }) => row.changes)).toEqual([
      [],
      [{ field: 'description', old: 'Takes orders.', new: 'Other.' }],
      [{ field: 'description', old: 'Other.', new: 'Another.' }],
    ])
  })
})
