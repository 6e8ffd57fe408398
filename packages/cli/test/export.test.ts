import { isName, type Manifest } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { afterEach, describe, expect, test } from '@jest/globals'
import { parseManifest } from '../src/operator/manifest-file.ts'
import { orderIntakeSource, useCliEnvironment } from './support/cli-environment.ts'
import { failure, wf } from './support/wf.ts'

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
  ...'a\n;\na;a\n\n; a\n b\n;a\n  b\n c;\t;a\tb;a\r\nb\r;\u0085;\u2028;\uFEFF;\u0001;\u007F;\u009B2J;a\u202Egnp.exe;---\na: 1\n---\n;\n;\n \n;a\n \n'.split(
    ';',
  ),
  'x'.repeat(100),
]
const AWKWARD_NAMES = AWKWARD.filter(isName)
const EMAILS = ['ada@acme.test', 'bob@acme.test', 'Eve@acme.test']

/** A workflow with these texts in every field. */
const TIMING = { timing: { time: '08:30', day: null, time_zone: 'UTC' } }

const awkwardWorkflow = (text: string, name: string, index: number) => ({
  name,
  description: text,
  scope: text,
  is_active: index % 2 === 0,
  auto_run: index % 2 === 0 ? null : { enabled: index % 3 === 0, frequency: 'daily', ...(index % 4 === 1 && TIMING) },
  users: EMAILS.slice(index % 3),
  triggers: [
    {
      name,
      is_active: index % 2 === 0,
      trigger_source: { slug: text, name },
      events: [{ slug: text, name }],
      filters: { [text]: [text, null, true, -0.1, 1e300, { [text]: {} }], empty: [] },
      input_message: text,
      subagent_sources: [{ name, type: 'street' }],
      created_at: '1970-01-01T00:00:00.001Z',
    },
  ],
  files: [
    { name, path: [name, 'docs'], content: text },
    { name: 'empty', content: '' },
  ],
  created_at: '2026-01-02T03:04:05.678Z',
  updated_at: '2099-12-31T23:59:59.999Z',
})

describe('wf export', () => {
  test('prints a manifest whose application changes nothing, also of texts that YAML could read as something else', async () => {
    const example = { note: AWKWARD.join(''), total: -1.5e-7, [AWKWARD_NAMES.join('')]: AWKWARD }
    const applied = await environment.apply({
      organization: {
        name: '2026-01-01',
        suspended: true,
        instructions: AWKWARD.join('\n'),
        month_budget: 0.000001,
        offered_models: ['fast', 'builtin'],
      },
      users: EMAILS.map((email, index) => ({ email, first_name: AWKWARD_NAMES[index], last_name: '~' })),
      webhook_sources: ['# a', 'b: c'].map((name) =>
        orderIntakeSource('http://127.0.0.1:1', {
          name,
          description: AWKWARD.join(' '),
          example_request_body: example,
          verify: false,
        }),
      ),
      workflows: [
        ...AWKWARD.map((text, index) => awkwardWorkflow(text, AWKWARD_NAMES[index] ?? `Workflow ${index}`, index)),
        { name: 'Lines', files: [{ name: 'many', content: 'a\n'.repeat(50_001) }] },
      ],
    })
    expect(applied).toMatchObject({ organization: { outcome: 'created' } })
    const { stdout } = await exportManifest()
    expect(await changesOf(stdout)).toEqual([])
    // As a block, these lines would occupy the event loop for more than 50 ms.
    expect(stdout).toContain(`content: "${String.raw`a\n`.repeat(50_001)}"`)
    expect(await changesOf((await exportManifest('--json')).stdout, 'exported.json')).toEqual([])
  })

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
    const secretHeader = { header_name: 'X-Key', header_value: 'hunter2' }
    await environment.apply({
      organization: { name: 'Acme' },
      users: [{ email: 'ada@acme.test' }],
      webhook_sources: [
        { name: 'Orders', description: 'Takes orders.', signing_secret: 'hunter2 hunter2', ...example },
      ],
      lookups: [
        { name: 'CRM', kind: 'http', url: 'http://127.0.0.1:1', tools: [{ name: 'me', path: '/me' }], ...secretHeader },
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
      const withoutSecrets = first.stdout.replaceAll(/ +# .*: give the copy its own\.\n/g, '')
      expect(again.stdout).toBe(withoutSecrets.replace('name: Acme', `name: ${name}`))
      const repeated = await wf(environment.env, ['apply', copy, '--organization', name, '--dry-run'])
      expect(repeated.stdout).toContain('New: 0, changed: 0, ')
    }
    await environment.apply({ organization: { name: 'Acme' }, workflows: [{ id: newId(), name: 'A' }] })
    const refused = await exportManifest('Acme', '--portable')
    expect(refused).toMatchObject({ ...failure('several are named "A"'), stdout: '' })
    const one = await exportManifest('--organization', 'Acme', '--portable', '--workflow', 'B')
    expect(one).toMatchObject({ exitStatus: 0, stdout: expect.stringContaining('name: B') })
  })

  test('keeps every digit of the numbers in filters', async () => {
    const manifest = `organization: { name: Acme }
workflows:
  - name: A
    triggers: [{ trigger_source: { slug: api, name: API }, filters: { big: 12345678901234567890, tiny: 1e-7, <<: no, __proto__: 1 } }]
`
    const file = await environment.writeFile('big.yaml', manifest.replace('<<: no', '"<<": no'))
    await wf(environment.env, ['apply', file])
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
    const message = `Error: There is no workflow ${unknown}. List them with wf workflows list.\n`
    expect(await exportManifest('--workflow', unknown)).toMatchObject({ ...failure(message), stdout: '' })
  })

  test('prints organizations of several pages, in the order of the list', async () => {
    const files = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, content: name }))
    const workflows = Array.from({ length: 21 }, (_, index) => ({ name: `Workflow ${index}`, files }))
    const users = Array.from({ length: 1_001 }, (_, index) => ({ email: `user${index}@acme.test` }))
    await environment.apply({ organization: { name: 'Acme' }, users, workflows })
    const { stdout } = await exportManifest()
    const exported = parseManifest('exported', stdout).value as Manifest
    expect(exported.users).toHaveLength(1_001)
    expect(exported.workflows?.map(({ name }) => name)).toEqual(workflows.map(({ name }) => name))
    expect(await changesOf(stdout)).toEqual([])
  })
})
