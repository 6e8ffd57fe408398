import { newId } from '@workflow-service/database'
import { startCustomerEndpoint } from '@workflow-service/testkit'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { orderIntakeSource, useCliEnvironment } from './support/cli-environment.ts'
import { wf } from './support/wf.ts'

const environment = useCliEnvironment()
let endpoint: Awaited<ReturnType<typeof startCustomerEndpoint>>

beforeEach(async () => {
  endpoint = await startCustomerEndpoint()
  await environment.db.pool.query('DELETE FROM audit_events')
})
afterEach(async () => {
  await endpoint.close()
  await environment.clear()
})

interface Ids {
  organization_id: string
  workflows: { id: string }[]
  webhook_sources: { id: string }[]
}

const manifest = (description: string, sourceChanges: object = {}) => ({
  organization: { name: 'Acme' },
  users: [{ email: 'ada@acme.test' }],
  api_keys: [{ name: 'ci' }],
  webhook_sources: [orderIntakeSource(endpoint.url, { signing_secret: 'first secret', ...sourceChanges })],
  workflows: [{ name: 'Forward', description }],
})
const apply = async (value: object, args: string[] = [], options: Parameters<typeof wf>[2] = {}) =>
  await wf(environment.env, ['apply', await environment.writeFile('manifest.json', value), ...args], options)
const descriptionInDatabase = async () => (await environment.db.prisma.workflow.findFirstOrThrow()).description

async function changeInApplication(kind: string, organizationId: string, id: string): Promise<void> {
  await environment.db.pool.query(
    `INSERT INTO audit_events (id, organization_id, at, actor_kind, actor_id, actor_name, action, target_kind, target_id)
     VALUES ($1, $2, '2026-05-04T03:02:01Z', 'person', $3, 'Ada Lovelace', $4, $5, $6)`,
    [newId(), organizationId, newId(), `${kind}.saved`, kind, id],
  )
}

describe('wf apply --dry-run', () => {
  test('shows old and new values, writes nothing, sends nothing and needs no dispatcher', async () => {
    await apply(manifest('Send it to Order intake.'))
    const changed = {
      ...manifest('Post it to Order intake.', { signing_secret: 'second secret' }),
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

1 to create, 3 to change, 2 unchanged.
Nothing was written, because of --dry-run.
`)
    expect(await descriptionInDatabase()).toBe('Send it to Order intake.')
    expect(endpoint.requests).toHaveLength(1)
  })

  test('prints JSON without any key or secret', async () => {
    const { stdout, json } = await apply(manifest('Send it.'), ['--dry-run', '--json'])
    expect(json()).toMatchObject({
      dry_run: true,
      organization: { name: 'Acme', outcome: 'created', changes: [] },
      api_keys: [{ name: 'ci', outcome: 'created' }],
      webhook_sources: [{ name: 'Order intake', outcome: 'created' }],
      workflows: [{ name: 'Forward', outcome: 'created' }],
      overwrites: [],
    })
    expect(stdout).not.toMatch(/"key"|first secret/)
  })

  test('shows the difference of long texts', async () => {
    await apply(manifest(`${'a'.repeat(500)} old end`))
    const { stdout } = await apply(manifest(`${'a'.repeat(500)} new end`), ['--dry-run'])
    expect(stdout).toMatch(/description: …a+ old end" → …a+ new end"\n/)
  })
})

describe('wf apply over changes of people', () => {
  let ids: Ids
  beforeEach(async () => {
    ids = (await apply(manifest('First.'), ['--json'])).json() as Ids
    await changeInApplication('workflow', ids.organization_id, ids.workflows[0]!.id)
  })

  test('applies nothing without a terminal, and says who changed what, when, and what to do', async () => {
    const { exitStatus, stdout, stderr } = await apply(manifest('Second.'))
    expect({ exitStatus, stdout }).toEqual({ exitStatus: 1, stdout: '' })
    expect(stderr).toContain(
      'workflow Forward: changed in the application by Ada Lovelace, 2026-05-04 03:02:01 UTC (workflow.saved)\n',
    )
    expect(stderr).toContain(
      'See the plan with --dry-run. Take the changes over with wf export, or overwrite them with --yes.',
    )
    expect(await descriptionInDatabase()).toBe('First.')
    const inJson = await apply(manifest('Second.'), ['--json'])
    expect(JSON.parse(inJson.stderr)).toMatchObject({
      error: {
        overwrites: [{ kind: 'workflow', name: 'Forward', by: 'Ada Lovelace', at: '2026-05-04T03:02:01.000Z' }],
      },
    })
  })

  test('overwrites them with --yes, and reports that', async () => {
    const { exitStatus, json } = await apply(manifest('Second.'), ['--yes', '--json'])
    expect(exitStatus).toBe(0)
    expect(json()).toMatchObject({ overwrites: [{ kind: 'workflow', by: 'Ada Lovelace' }] })
    expect(await descriptionInDatabase()).toBe('Second.')
    expect((await apply(manifest('Third.'))).exitStatus).toBe(0)
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
    const result = await apply(manifest('Second.'), [], { ask })
    expect(result.exitStatus).toBe(exitStatus)
    expect(result.stderr).toMatch(
      /description: "First\." → "Second\."\n {4}! changed in the application by Ada Lovelace/,
    )
    expect(questions).toEqual(['Overwrite this change that people made in the application? [y/N] '])
    expect(await descriptionInDatabase()).toBe(description)
  })

  test('protects webhook sources too, and records that an operator saved them', async () => {
    await changeInApplication('webhook_source', ids.organization_id, ids.webhook_sources[0]!.id)
    const changed = manifest('First.', { description: 'Other.' })
    expect((await apply(changed)).stderr).toContain('webhook source Order intake: changed in the application')
    expect((await apply(changed, ['--yes'])).exitStatus).toBe(0)
    expect((await apply(manifest('First.', { description: 'Another.' }))).exitStatus).toBe(0)
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
