import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { WorkflowOut } from '@workflow-service/contract'
import { findWorkflows, newId } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/testkit'
import { createWorkflowDocuments } from '../src/workflow-documents.ts'
import {
  apiTrigger,
  startableWorkflow,
  startTestGateway,
  type TestGateway,
  type TestOrganization,
} from './support/test-gateway.ts'

let gateway: TestGateway
/** Looks workflows up one by one, `lister` page by page: each has to notice a change by itself. */
let lister: { url: string; metricsPort: number }
let organization: TestOrganization
let ids: { workflow: string; other: string; trigger: string; otherTrigger: string; file: string }

beforeAll(async () => {
  gateway = await startTestGateway()
  lister = await gateway.startAnother()
}, 60_000)

afterAll(() => gateway.stop())

/** Two workflows that list Ada only, and one that lists everyone; nothing is kept of them yet. */
beforeEach(async () => {
  ids = { workflow: newId(), other: newId(), trigger: newId(), otherTrigger: newId(), file: newId() }
  organization = await gateway.apply({
    users: ['ada', 'bob'].map((name) => ({ email: `${name}@acme.test`, first_name: name })),
    workflows: [
      workflow(ids.workflow, 1, {
        auto_run: { enabled: true, frequency: 'daily' },
        files: [{ id: ids.file, name: 'a.md', path: ['docs'], content: 'old' }],
        triggers: [trigger(ids.trigger)],
      }),
      workflow(ids.other, 2, { triggers: [trigger(ids.otherTrigger)] }),
      workflow(newId(), 3, { scope: 'company_wide', users: [] }),
    ],
  })
})

function workflow(id: string, second: number, change: object): Record<string, unknown> {
  const createdAt = new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()
  return startableWorkflow({ id, scope: 'only_me', users: ['ada@acme.test'], created_at: createdAt, ...change })
}

function trigger(id: string): Record<string, unknown> {
  return apiTrigger({
    id,
    events: ['a', 'b'].map((slug) => ({ slug, name: slug })),
    subagent_sources: [{ name: 'Street', type: 'street', id: newId() }],
  })
}

const get = async (id: string, key = organization.key) => (await gateway.get(`/v1/workflows/${id}`, { key })).body
const list = async (): Promise<WorkflowOut[]> =>
  (await gateway.get('/v1/workflows', { key: organization.key, url: lister.url })).body.data

/** All three, once singly and once as a page. */
async function readAll(): Promise<[WorkflowOut[], WorkflowOut[]]> {
  const page = await list()
  return [await Promise.all(page.map(({ id }) => get(id))), page]
}

/** How many documents a gateway has read from the database. */
async function countRead(metricsUrl: string): Promise<number> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text()
  return Number(/^gateway_workflow_documents_total\{from="database"[^}]*\} (\d+)/m.exec(text)?.[1] ?? 0)
}
const countReads = async (): Promise<number[]> =>
  Promise.all([countRead(gateway.metricsUrl), countRead(`http://127.0.0.1:${lister.metricsPort}`)])

/** Runs SQL in which `:name` stands for an id. */
async function run(sql: string, client: Pick<TestGateway['db']['pool'], 'query'> = gateway.db.pool): Promise<void> {
  const values: Record<string, string> = { ...ids, organization: organization.id }
  await client.query(sql.replaceAll(/:([a-z]\w*)/gi, (_all, name: string) => `'${values[name]}'`))
}

/** What a new process would answer: read from the database just now. */
async function readAnew(read: readonly WorkflowOut[]): Promise<WorkflowOut[]> {
  const found = await findWorkflows(
    gateway.db,
    read.map(({ id }) => ({ organizationId: organization.id, workflowId: id })),
  )
  return found.map((each) => JSON.parse(each!.json) as WorkflowOut)
}

const ADA = `(SELECT id FROM users WHERE organization_id = :organization AND email = 'ada@acme.test')`
const BOB = `(SELECT id FROM users WHERE organization_id = :organization AND email = 'bob@acme.test')`

describe('a document that is kept', () => {
  test('is answered without being read again', async () => {
    const first = await readAll()
    const before = await countReads()
    expect(await readAll()).toEqual(first)
    expect(await countReads()).toEqual(before)
  })

  test.each([
    ['workflows', `UPDATE workflows SET name = 'New' WHERE id = :workflow`],
    ['workflows', `UPDATE workflows SET description = 'New' WHERE id = :workflow`],
    ['workflows', `UPDATE workflows SET scope = 'new' WHERE id = :workflow`],
    ['workflows', `UPDATE workflows SET scope = 'company_wide' WHERE id = :workflow`],
    ['workflows', `UPDATE workflows SET is_active = false WHERE id = :workflow`],
    ['workflows', `UPDATE workflows SET auto_run_enabled = false, auto_run_next_at = NULL WHERE id = :workflow`],
    ['workflows', `UPDATE workflows SET auto_run_frequency = 'weekly' WHERE id = :workflow`],
    ['workflows', `UPDATE workflows SET created_at = created_at - interval '1 day' WHERE id = :workflow`],
    ['workflows', `UPDATE workflows SET updated_at = updated_at + interval '1 day' WHERE id = :workflow`],
    ['workflow_users', `INSERT INTO workflow_users VALUES (:organization, :workflow, ${BOB})`],
    ['workflow_users', `UPDATE workflow_users SET user_id = ${BOB} WHERE workflow_id = :workflow`],
    ['workflow_users', `DELETE FROM workflow_users WHERE workflow_id = :workflow`],
    ['workflow_users', `TRUNCATE workflow_users`],
    ['users', `UPDATE users SET first_name = 'New' WHERE id = ${ADA}`],
    ['users', `UPDATE users SET last_name = 'New' WHERE id = ${ADA}`],
    ['users', `UPDATE users SET email = 'new@acme.test' WHERE id = ${ADA}`],
    ['users', `UPDATE users SET first_name = 'New' WHERE id = ${BOB}`],
    [
      'users',
      `INSERT INTO users (id, organization_id, email) VALUES (gen_random_uuid(), :organization, 'c@acme.test')`,
    ],
    ['users', `DELETE FROM users WHERE id = ${ADA}`],
    ['users', `DELETE FROM users WHERE id = ${BOB}`],
    [
      'triggers',
      `INSERT INTO triggers (id, workflow_id, is_active, source_slug, source_name)
                  VALUES (gen_random_uuid(), :workflow, true, 'api', 'API')`,
    ],
    ['triggers', `UPDATE triggers SET name = 'New' WHERE id = :trigger`],
    ['triggers', `UPDATE triggers SET is_active = false WHERE id = :trigger`],
    ['triggers', `UPDATE triggers SET source_slug = 'new' WHERE id = :trigger`],
    ['triggers', `UPDATE triggers SET source_name = 'New' WHERE id = :trigger`],
    ['triggers', `UPDATE triggers SET filters = '{"a":1}' WHERE id = :trigger`],
    ['triggers', `UPDATE triggers SET input_message = 'New' WHERE id = :trigger`],
    ['triggers', `UPDATE triggers SET workflow_id = :other WHERE id = :trigger`],
    ['triggers', `DELETE FROM triggers WHERE id = :trigger`],
    ['triggers', `TRUNCATE triggers CASCADE`],
    ['trigger_events', `INSERT INTO trigger_events VALUES (:trigger, 2, 'new', 'New')`],
    ['trigger_events', `UPDATE trigger_events SET slug = 'new' WHERE trigger_id = :trigger AND position = 0`],
    ['trigger_events', `UPDATE trigger_events SET name = 'New' WHERE trigger_id = :trigger AND position = 0`],
    ['trigger_events', `UPDATE trigger_events SET position = 9 WHERE trigger_id = :trigger AND position = 0`],
    [
      'trigger_events',
      `UPDATE trigger_events SET trigger_id = :otherTrigger, position = 9, slug = 'new'
                        WHERE trigger_id = :trigger AND position = 0`,
    ],
    ['trigger_events', `DELETE FROM trigger_events WHERE trigger_id = :trigger AND position = 0`],
    ['trigger_events', `TRUNCATE trigger_events`],
    ['subagent_sources', `INSERT INTO subagent_sources VALUES (:trigger, 1, NULL, 'New', 'platform_internal')`],
    ['subagent_sources', `UPDATE subagent_sources SET name = 'New' WHERE trigger_id = :trigger`],
    ['subagent_sources', `UPDATE subagent_sources SET type = 'new' WHERE trigger_id = :trigger`],
    ['subagent_sources', `UPDATE subagent_sources SET source_id = gen_random_uuid() WHERE trigger_id = :trigger`],
    [
      'subagent_sources',
      `UPDATE subagent_sources SET trigger_id = :otherTrigger, position = 9 WHERE trigger_id = :trigger`,
    ],
    ['subagent_sources', `DELETE FROM subagent_sources WHERE trigger_id = :trigger`],
    ['subagent_sources', `TRUNCATE subagent_sources`],
    ['files', `INSERT INTO files (id, workflow_id, name, content) VALUES (gen_random_uuid(), :workflow, 'new', '')`],
    ['files', `UPDATE files SET name = 'new' WHERE id = :file`],
    ['files', `UPDATE files SET path = '{new}' WHERE id = :file`],
    ['files', `UPDATE files SET id = gen_random_uuid() WHERE id = :file`],
    ['files', `UPDATE files SET workflow_id = :other WHERE id = :file`],
    ['files', `DELETE FROM files WHERE id = :file`],
    ['files', `TRUNCATE files`],
  ])('of which %s changes is read again at once: %s', async (_table, sql) => {
    const [singlyBefore, pageBefore] = await readAll()
    expect(singlyBefore).toEqual(pageBefore)
    await run(sql)
    const [singly, page] = await readAll()
    expect(singly).not.toEqual(singlyBefore)
    expect(singly).toEqual(await readAnew(singly))
    expect(page).toEqual(singly)
  })

  test.each([
    ['the content of a file', `UPDATE files SET content = 'new' WHERE id = :file`],
    ['when auto-run is due', `UPDATE workflows SET auto_run_next_at = now() WHERE id = :workflow`],
    ['since when auto-run is on', `UPDATE workflows SET auto_run_anchor_at = now() WHERE id = :workflow`],
    ['the organization’s name', `UPDATE organizations SET name = 'New' WHERE id = :organization`],
  ])('is not read again when only %s changes', async (_what, sql) => {
    const first = await readAll()
    const before = await countReads()
    await run(sql)
    expect(await readAll()).toEqual(first)
    expect(await countReads()).toEqual(before)
  })

  test('is not read again when another organization changes', async () => {
    const first = await readAll()
    const before = await countReads()
    await gateway.apply({ users: [{ email: 'ada@acme.test' }], workflows: [startableWorkflow()] })
    expect(await readAll()).toEqual(first)
    expect(await countReads()).toEqual(before)
  })

  test('is not answered for a workflow that was deleted, nor for another made anew with its id', async () => {
    await readAll()
    const client = await gateway.db.pool.connect()
    try {
      await run('CREATE TEMP TABLE kept AS SELECT * FROM workflows WHERE id = :workflow', client)
      await run('DELETE FROM workflows WHERE id = :workflow', client)
      expect((await list()).map(({ id }) => id)).not.toContain(ids.workflow)
      expect((await gateway.get(`/v1/workflows/${ids.workflow}`, { key: organization.key })).status).toBe(404)
      await readAll()
      for (const name of ['Second', 'Third']) {
        await run('DELETE FROM workflows WHERE id = :workflow', client)
        await run(`UPDATE kept SET name = '${name}'`, client)
        await run('INSERT INTO workflows SELECT * FROM kept', client)
        expect(await get(ids.workflow)).toMatchObject({ name, triggers: [], files: [], users: [] })
        expect((await list())[0]).toMatchObject({ id: ids.workflow, name, triggers: [], files: [], users: [] })
      }
    } finally {
      client.release(true)
    }
  })

  test('of a workflow that is deleted and made anew in one transaction is read again', async () => {
    await readAll()
    const client = await gateway.db.pool.connect()
    try {
      await client.query('BEGIN')
      await run('CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT * FROM workflows WHERE id = :workflow', client)
      await run('DELETE FROM workflows WHERE id = :workflow', client)
      await run('INSERT INTO workflows SELECT * FROM kept', client)
      await client.query('COMMIT')
    } finally {
      client.release()
    }
    expect((await list())[0]).toMatchObject({ id: ids.workflow, triggers: [], files: [], users: [] })
    expect(await get(ids.workflow)).toMatchObject({ triggers: [], files: [], users: [] })
  })

  test('is never answered to another organization', async () => {
    await readAll()
    const other = await gateway.apply({})
    const answer = await gateway.get(`/v1/workflows/${ids.workflow}`, { key: other.key })
    expect(answer.status).toBe(404)
    expect(answer.text).not.toContain('Forward orders')
    expect((await gateway.get('/v1/workflows', { key: other.key, url: lister.url })).body.data).toEqual([])
  })
})

describe('two who change one workflow at once', () => {
  const first = `INSERT INTO trigger_events VALUES (:trigger, 5, 'first', 'First')`
  const second = `INSERT INTO files (id, workflow_id, name, content) VALUES (gen_random_uuid(), :workflow, 'second', '')`

  test.each([
    [first, second],
    [first, `UPDATE workflows SET name = 'Second' WHERE id = :workflow`],
    [`UPDATE workflows SET name = 'First' WHERE id = :workflow`, second],
    [first, `UPDATE triggers SET workflow_id = :other WHERE id = :trigger`],
    [`UPDATE triggers SET workflow_id = :other WHERE id = :trigger`, first],
    [
      `UPDATE users SET first_name = 'First' WHERE id = ${BOB}`,
      `INSERT INTO workflow_users VALUES (:organization, :workflow, ${BOB})`,
    ],
    [
      `INSERT INTO workflow_users VALUES (:organization, :workflow, ${BOB})`,
      `UPDATE users SET first_name = 'Second' WHERE id = ${BOB}`,
    ],
    [
      `UPDATE users SET first_name = 'First' WHERE id = ${ADA}`,
      `UPDATE users SET first_name = 'Second' WHERE id = ${BOB}`,
    ],
  ])('commit one after another, and what is read after each is what is there: %s; %s', async (one, other) => {
    await readAll()
    const clients = await Promise.all([gateway.db.pool.connect(), gateway.db.pool.connect()])
    try {
      for (const client of clients) await client.query('BEGIN')
      // The second one has its transaction number first: the order of numbers is not the order of commits.
      await clients[1].query('SELECT pg_current_xact_id()')
      await run(one, clients[0])
      const waiting = run(other, clients[1])
      const [before] = await readAll()
      expect(before).toEqual(await readAnew(before))
      await clients[0].query('COMMIT')
      await waiting
      const [between, pageBetween] = await readAll()
      expect(between).toEqual(await readAnew(between))
      expect(pageBetween).toEqual(between)
      await clients[1].query('COMMIT')
      const [after, pageAfter] = await readAll()
      expect(after).toEqual(await readAnew(after))
      expect(pageAfter).toEqual(after)
      expect([between, after]).not.toEqual([before, before])
    } finally {
      for (const client of clients) client.release(true)
    }
  })
})

test('who changes a part first and the workflow itself after that never waits in a circle with one who changes only it', async () => {
  const [one, other] = await Promise.all([gateway.db.pool.connect(), gateway.db.pool.connect()])
  try {
    await one.query('BEGIN')
    await run(`UPDATE triggers SET name = 'New' WHERE id = :trigger`, one)
    const waiting = run(`UPDATE workflows SET name = 'New' WHERE id = :workflow`, other)
    await waitUntil(async () => {
      const blocked = 'SELECT FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()'
      return (await gateway.db.pool.query(blocked)).rowCount === 1
    })
    await run(`UPDATE workflows SET description = 'New' WHERE id = :workflow`, one)
    await one.query('COMMIT')
    await waiting
    expect(await get(ids.workflow)).toMatchObject({ name: 'New', description: 'New', triggers: [{ name: 'New' }] })
  } finally {
    for (const client of [one, other]) client.release(true)
  }
})

describe('what is kept', () => {
  test('is bounded in all and for each document, and answered all the same when it is not kept', async () => {
    const workflows = Array.from({ length: 6 }, (_, index) =>
      workflow(newId(), index, { description: 'x'.repeat(5_000) }),
    )
    const large = workflow(newId(), 9, { description: 'y'.repeat(12_000) })
    const { id, key } = await gateway.apply({ users: [{ email: 'ada@acme.test' }], workflows: [...workflows, large] })
    const reads: string[] = []
    const documents = createWorkflowDocuments({
      db: gateway.db,
      maxBytes: 30_000,
      maxDocumentBytes: 20_000,
      onAnswer: (from, count) => reads.push(...Array.from({ length: count }, () => from)),
    })
    for (const each of [...workflows, large, large]) {
      const json = await documents.find(id, String(each['id']))
      expect(JSON.parse(json ?? '')).toEqual(await get(String(each['id']), key))
      expect(documents.keptBytes).toBeLessThanOrEqual(30_000)
    }
    expect(documents.keptBytes).toBeGreaterThan(20_000)
    expect(reads).toEqual(reads.map(() => 'database'))
    await documents.find(id, String(workflows.at(-1)!['id']))
    expect(reads.at(-1)).toBe('memory')
  })

  test('leaves out of a page what is gone since it was listed', async () => {
    const documents = createWorkflowDocuments({ db: gateway.db })
    const gone = { id: newId(), version: 'x' }
    const found = await documents.findListed(organization.id, [
      { id: ids.other, version: 'x' },
      gone,
      { id: ids.workflow, version: 'x' },
    ])
    expect(found.map((json) => (JSON.parse(json) as WorkflowOut).id)).toEqual([ids.other, ids.workflow])
  })

  test('asks once for the same workflow, and in few statements for many, when they are asked for at once', async () => {
    const statements: { name: string; text: string; values: [string] }[] = []
    const pool = {
      query: (statement: (typeof statements)[number]) => {
        statements.push(statement)
        return gateway.db.pool.query(statement)
      },
    }
    const documents = createWorkflowDocuments({ db: { pool: pool as unknown as typeof gateway.db.pool } })
    const findAll = () =>
      Promise.all(
        Array.from({ length: 80 }, (_, index) => documents.find(organization.id, index % 2 ? ids.workflow : ids.other)),
      )
    const first = await findAll()
    expect(new Set(first).size).toBe(2)
    const asked = () => statements.map(({ name, values }) => [name, (JSON.parse(values[0]) as object[]).length])
    expect(asked()).toEqual(asked().map(() => ['find-workflows', 2]))
    statements.splice(0)
    expect(await findAll()).toEqual(first)
    expect(asked()).toEqual([['find-workflow-versions', 2]])
  })
})
