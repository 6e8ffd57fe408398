import { isName, type Manifest } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { afterEach, describe, expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import { parseManifest } from '../src/operator/manifest-file.ts'
import { orderIntakeSource, useCliEnvironment } from './support/cli-environment.ts'
import { wf } from './support/wf.ts'

const environment = useCliEnvironment()
afterEach(async () => await environment.clear())

interface Outcomes {
  organization: { outcome: string }
  [section: string]: { outcome: string } | { outcome: string }[]
}

const exportManifest = async (...args: string[]) => await wf(environment.env, ['export', ...args])

/** Applies the text and returns every outcome that is not `unchanged`. */
async function changesOf(text: string, name = 'exported.yaml'): Promise<unknown[]> {
  const file = await environment.writeFile(name, text)
  const { json, exitStatus, stderr } = await wf(environment.env, ['apply', file, '--json'])
  if (exitStatus !== 0) throw new Error(stderr)
  const { organization, users, webhook_sources, workflows } = json() as Outcomes
  return [organization, users, webhook_sources, workflows].flat().filter((item) => item?.outcome !== 'unchanged')
}

// Texts that YAML reads as something else when they are written without care.
const AWKWARD = [
  ...`null ~ yes True 0x1F 0o7 1e3 1_000 -0 .inf .NaN 2026-01-01 << = 12:30 # &a *a !x | >- --- ... " ' ? @ \``.split(
    ' ',
  ),
  ...'- a;a: b;a #b;!!int 3;%YAML 1.2; a;a ;\\n;${x}'.split(';'),
  ...'a\n;\na;a\n\n; a\n b\n;a\n  b\n c;\t;a\tb;a\r\nb\r;\u0085;\u2028;\uFEFF;\u0001;\u007F;\u009B2J;a\u202Egnp.exe;---\na: 1\n---\n;\n'.split(
    ';',
  ),
  'x'.repeat(300),
]
const text = (maxLength: number, minLength = 0) =>
  fc
    .oneof(fc.constantFrom(...AWKWARD), fc.string({ unit: 'binary', maxLength }), fc.lorem({ mode: 'sentences' }))
    .map((value) => Array.from(value.replaceAll('\0', '')).slice(0, maxLength).join(''))
    .filter((value) => value.length >= minLength)
const nameText = (maxLength: number, minLength = 1) => text(maxLength, minLength).filter(isName)
const emails = ['ada@acme.test', 'bob@acme.test', 'Eve@acme.test']
const time = fc
  .date({ min: new Date('1970-01-01'), max: new Date('2099-12-31'), noInvalidDate: true })
  .map((date) => date.toISOString())
const filters = fc.dictionary(
  text(20).filter((key) => key !== '__proto__'),
  fc.oneof(
    text(50),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
    fc.jsonValue(),
  ),
  { noNullPrototype: true },
)
const named = fc.record({ slug: text(100, 1), name: nameText(200) })
const trigger = fc.record(
  {
    name: nameText(500, 0),
    is_active: fc.boolean(),
    trigger_source: named,
    events: fc.uniqueArray(named, { selector: ({ slug }) => slug, maxLength: 3 }),
    filters,
    input_message: text(1_000),
    subagent_sources: fc.array(
      fc.record({ name: nameText(200), type: fc.constantFrom('api', 'street', 'platform_internal') }),
      { maxLength: 2 },
    ),
    created_at: time,
  },
  { requiredKeys: ['trigger_source'] },
)
const file = fc.record(
  { name: nameText(255), path: fc.array(nameText(255), { maxLength: 3 }), content: text(5_000) },
  { requiredKeys: ['name'] },
)
const workflow = fc.record(
  {
    name: nameText(500),
    description: text(5_000),
    scope: fc.oneof(fc.constantFrom('company_wide', 'only_me'), text(100, 1)),
    is_active: fc.boolean(),
    auto_run: fc.constantFrom(null, { enabled: false }, { enabled: true, frequency: 'weekly' as const }),
    users: fc.subarray(emails),
    triggers: fc.array(trigger, { maxLength: 3 }),
    files: fc.uniqueArray(file, { selector: ({ name, path = [] }) => [...path, name].join('/'), maxLength: 3 }),
    created_at: time,
    updated_at: time,
  },
  { requiredKeys: ['name'] },
)
const webhookSource = fc.record({
  name: nameText(200).filter((name) => /[a-z]/i.test(name)),
  description: text(1_000),
  endpoint_url: fc.constant('http://127.0.0.1:1/orders'),
  signing_secret: fc.constantFrom(null, 'a secret'),
  example_request_body: fc.record({ note: text(200), total: fc.double({ noNaN: true, noDefaultInfinity: true }) }),
  verify: fc.constant(false),
})
const manifests = fc.record({
  organization: fc.record(
    {
      name: nameText(200),
      suspended: fc.boolean(),
      instructions: text(1_000),
      month_budget: fc.constantFrom(null, 0, 0.000001, 12.34, 1_000_000_000),
      offered_models: fc.constantFrom([], ['builtin'], ['fast', 'builtin']),
    },
    { requiredKeys: ['name', 'suspended', 'instructions'] },
  ),
  users: fc.tuple(
    ...emails.map((email) =>
      fc.record({ email: fc.constant(email), first_name: nameText(200, 0), last_name: nameText(200, 0) }),
    ),
  ),
  webhook_sources: fc.uniqueArray(webhookSource, {
    selector: ({ name }) =>
      name
        .normalize('NFKD')
        .toLowerCase()
        .replaceAll(/[^a-z]/g, ''),
    maxLength: 2,
  }),
  workflows: fc.uniqueArray(workflow, { selector: ({ name }) => name, maxLength: 3 }),
})

describe('wf export', () => {
  test('prints a manifest whose application changes nothing, for any manifest', async () => {
    await fc.assert(
      fc.asyncProperty(manifests, async (manifest) => {
        await environment.clear()
        const first = await environment.apply(manifest)
        expect(first).toMatchObject({ organization: { outcome: 'created' } })
        expect(await changesOf((await exportManifest()).stdout)).toEqual([])
        expect(await changesOf((await exportManifest('--json')).stdout, 'exported.json')).toEqual([])
      }),
      { seed: 1, numRuns: 10, endOnFailure: true },
    )
  }, 120_000)

  test('has the ids, times and values of everything but keys, secrets, sessions and roles', async () => {
    const id = newId()
    await environment.apply({
      organization: { id, name: 'Acme' },
      users: [{ email: 'ada@acme.test', first_name: 'Ada' }, { email: 'bob@acme.test' }],
      api_keys: [{ name: 'ci' }],
      sessions: [{ open: true }],
      webhook_sources: [orderIntakeSource('http://127.0.0.1:1', { signing_secret: 'hunter2 hunter2', verify: false })],
      workflows: [
        {
          name: 'Forward',
          created_at: '2026-01-02T03:04:05.678Z',
          updated_at: '2026-02-03T04:05:06.789Z',
          users: ['ada@acme.test'],
          files: [{ name: 'a.md', path: ['docs'], content: '# A\n\nText.\n' }, { name: 'empty' }],
        },
      ],
    })
    const { stdout, exitStatus } = await exportManifest('Acme')
    expect(exitStatus).toBe(0)
    const shown = stdout.replaceAll(/(?<=- id: )[0-9a-f-]{36}/g, 'ID')
    expect(shown).toBe(`# Exported. Applying it with "wf apply" changes nothing.
# Not contained, and kept by an apply: API keys, signing secrets, sessions, the roles of people, runs and logs.
# updated_at is applied as it is written: remove it from a workflow that you change.

organization:
  id: ${id}
  name: Acme

users:
  - email: ada@acme.test
    first_name: Ada
  - email: bob@acme.test

webhook_sources:
  - id: ID
    name: Order intake
    description: Takes orders.
    endpoint_url: http://127.0.0.1:1/orders
    example_request_body:
      order_id: A-1
    verify: false
    # A signing secret is set. An apply keeps it.

workflows:
  - id: ID
    name: Forward
    scope: company_wide
    is_active: true
    created_at: 2026-01-02T03:04:05.678Z
    updated_at: 2026-02-03T04:05:06.789Z
    users:
      - ada@acme.test
    triggers: []
    files:
      - id: ID
        name: empty
      - id: ID
        name: a.md
        path:
          - docs
        content: |
          # A

          Text.
`)
  })

  test('--portable copies an organization to a second one as it is, in YAML and in JSON', async () => {
    const apiTrigger = {
      trigger_source: { slug: 'api', name: 'API' },
      subagent_sources: [{ name: 'Orders', type: 'api' }],
    }
    const example = { endpoint_url: 'http://127.0.0.1:1/', example_request_body: { id: 'A' }, verify: false }
    await environment.apply({
      organization: { name: 'Acme' },
      users: [{ email: 'ada@acme.test' }],
      webhook_sources: [
        { name: 'Orders', description: 'Takes orders.', signing_secret: 'hunter2 hunter2', ...example },
      ],
      workflows: ['B', 'A'].map((name) => ({
        name,
        users: ['ada@acme.test'],
        triggers: [apiTrigger, apiTrigger],
        files: [{ name: 'a.md', path: ['docs'], content: name }],
      })),
    })
    const first = await exportManifest('Acme', '--portable')
    expect(first.stdout).not.toMatch(/\bid: [0-9a-f]{8}-|_at:/)
    for (const [name, ...args] of [['Second'], ['Third', '--json']] as const) {
      const { stdout } = await exportManifest('Acme', '--portable', ...args)
      const copy = await environment.writeFile(args.length > 0 ? 'copy.json' : 'copy.yaml', stdout)
      const applied = await wf(environment.env, ['apply', copy, '--organization', name, '--json', '--allow-unknown'])
      expect(applied).toMatchObject({ exitStatus: 0 })
      const again = await exportManifest(name, '--portable')
      const withoutSecret = first.stdout.replace(/ +# A signing secret is set.*\n/, '')
      expect(again.stdout).toBe(withoutSecret.replace('name: Acme', `name: ${name}`))
      const repeated = await wf(environment.env, ['apply', copy, '--organization', name, '--dry-run'])
      expect(repeated.stdout).toContain('0 to create, 0 to change, ')
    }
    await environment.apply({ organization: { name: 'Acme' }, workflows: [{ id: newId(), name: 'A' }] })
    expect(await exportManifest('Acme', '--portable')).toMatchObject({
      exitStatus: 1,
      stdout: '',
      stderr: expect.stringContaining('several are named "A"'),
    })
  })

  test('keeps every digit of the numbers in filters', async () => {
    const manifest = `organization: { name: Acme }
workflows:
  - name: A
    triggers: [{ trigger_source: { slug: api, name: API }, filters: { big: 12345678901234567890, tiny: 1e-7, <<: no, __proto__: 1 } }]
`
    await wf(environment.env, [
      'apply',
      await environment.writeFile('big.yaml', manifest.replace('<<: no', '"<<": no')),
    ])
    for (const args of [[], ['--json']]) {
      const { stdout } = await exportManifest(...args)
      expect(stdout).toContain('12345678901234567890')
      expect(await changesOf(stdout)).toEqual([])
    }
  })

  test('prints one workflow with the users that it lists', async () => {
    const applied = (await environment.apply({
      organization: { name: 'Acme' },
      users: [{ email: 'ada@acme.test' }, { email: 'bob@acme.test' }],
      workflows: [{ name: 'A', users: ['bob@acme.test'] }, { name: 'B' }],
    })) as { workflows: { id: string }[] }
    const { stdout } = await exportManifest('--workflow', applied.workflows[0]!.id)
    const { users, workflows } = parseManifest('exported', stdout).value as Manifest
    expect(users).toEqual([{ email: 'bob@acme.test' }])
    expect(workflows?.map(({ name }) => name)).toEqual(['A'])
    const unknown = newId()
    expect(await exportManifest('--workflow', unknown)).toMatchObject({
      exitStatus: 1,
      stdout: '',
      stderr: `Error: Acme has no workflow ${unknown}.\n`,
    })
  })

  test('prints organizations of several pages, in the order of the list', async () => {
    const workflows = Array.from({ length: 45 }, (_, index) => ({
      name: `Workflow ${index}`,
      files: index === 44 ? ['a', 'b', 'c'].map((name) => ({ name, content: name.repeat(1_048_576) })) : [],
    }))
    const users = Array.from({ length: 1_200 }, (_, index) => ({ email: `user${index}@acme.test` }))
    await environment.apply({ organization: { name: 'Acme' }, users, workflows })
    const { stdout } = await exportManifest()
    const exported = parseManifest('exported', stdout).value as Manifest
    expect(exported.users).toHaveLength(1_200)
    expect(exported.workflows?.map(({ name }) => name)).toEqual(workflows.map(({ name }) => name))
    expect(await changesOf(stdout)).toEqual([])
  })
})
