import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import type { WorkflowOut } from '@workflow-service/contract'
import {
  deleteFile,
  deleteTrigger,
  deleteWorkflow,
  findWorkflows,
  newId,
  readWorkflowDetail,
  saveAutoRun,
  saveFile,
  saveTrigger,
  saveWorkflow,
  saveWorkflowUsers,
  setWorkflowActive,
  viewerOf,
  type WorkflowEdit,
} from '@workflow-service/database'
import { createWorkflowDocuments, joinJson, type JsonParts } from '../src/workflows/workflow-documents.ts'
import {
  apiTrigger,
  startableWorkflow,
  startTestGateway,
  type TestGateway,
  type TestOrganization,
  type TestWorkflow,
} from './support/test-gateway.ts'

let gateway: TestGateway
/** `gateway` answers single workflows and `lister` pages: each must notice a change by itself. */
let lister: { url: string; metricsPort: number }
let organization: TestOrganization
let ids: { workflow: string; other: string; trigger: string; otherTrigger: string; file: string }

beforeAll(async () => {
  gateway = await startTestGateway()
  lister = await gateway.startAnother()
})

afterAll(() => gateway.stop())

/** Two workflows that list Ada only and one that lists all users, none of them cached. */
beforeEach(async () => {
  ids = { workflow: newId(), other: newId(), trigger: newId(), otherTrigger: newId(), file: newId() }
  organization = await gateway.apply({
    users: USERS,
    workflows: [firstWorkflow(), otherWorkflow(), workflow(newId(), 3, { scope: 'company_wide', users: [] })],
  })
})

const USERS = ['ada', 'bob'].map((name) => ({ email: `${name}@acme.test`, first_name: name }))
const file = (change: object = {}) => ({ id: ids.file, name: 'a.md', path: ['docs'], content: 'old', ...change })
const firstWorkflow = (change: object = {}) =>
  workflow(ids.workflow, 1, {
    auto_run: { enabled: true, frequency: 'daily' },
    files: [file()],
    triggers: [trigger(ids.trigger)],
    ...change,
  })
const otherWorkflow = (change: object = {}) =>
  workflow(ids.other, 2, { triggers: [trigger(ids.otherTrigger)], ...change })

function workflow(id: string, second: number, change: object): TestWorkflow {
  const createdAt = new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()
  return startableWorkflow({ id, scope: 'only_me', users: ['ada@acme.test'], created_at: createdAt, ...change })
}

function trigger(id: string, change: object = {}): Record<string, unknown> {
  return apiTrigger({
    id,
    events: ['a', 'b'].map((slug) => ({ slug, name: slug })),
    subagent_sources: [{ name: 'Street', type: 'street', id: STREET }],
    ...change,
  })
}
const STREET = newId()

const get = async (id: string, key = organization.key) => (await gateway.get(`/v1/workflows/${id}`, { key })).body
const list = async (): Promise<WorkflowOut[]> =>
  (await gateway.get('/v1/workflows', { key: organization.key, url: lister.url })).body.data

/** Reads all three workflows one by one, and as a page. */
async function readAll(): Promise<[WorkflowOut[], WorkflowOut[]]> {
  const page = await list()
  return [await Promise.all(page.map(({ id }) => get(id))), page]
}

/** Counts the documents that each gateway has read from the database. */
const countReads = (): Promise<number[]> =>
  Promise.all(
    [gateway.metricsUrl, `http://127.0.0.1:${lister.metricsPort}`].map((url) =>
      gateway.metric('gateway_workflow_documents_total{from="database"', url),
    ),
  )

/** Applies a manifest to the organization. */
const apply = (manifest: object) => gateway.apply(manifest, organization.id)
/** Runs SQL with this id, that of the first workflow by default. */
const run = (sql: string, id = ids.workflow) => gateway.db.pool.query(sql, [id])

const parse = (document: JsonParts | null) => JSON.parse(joinJson(document ?? []).toString()) as WorkflowOut

/** Reads the workflows from the database, without a cache. */
async function readUncached(read: readonly WorkflowOut[]): Promise<WorkflowOut[]> {
  const found = await findWorkflows(
    gateway.db,
    read.map(({ id }) => ({ organizationId: organization.id, workflowId: id })),
  )
  return found.map((each) => parse([each!.start, each!.users?.json ?? '', each!.end]))
}

/** Makes changes, and lists those after which a gateway answers documents as before, or not as they are stored. */
async function listUnseen(changes: readonly (readonly [what: unknown, change: () => Promise<unknown>])[]) {
  const unseen: unknown[] = []
  let [before] = await readAll()
  for (const [what, change] of changes) {
    await change()
    const [singly, page] = await readAll()
    const stored = await readUncached(singly)
    const isSeen = !isDeepStrictEqual(singly, before) && isDeepStrictEqual([singly, page], [stored, stored])
    if (!isSeen) unseen.push({ what, before, singly, page, stored })
    before = singly
  }
  return unseen
}

type Detail = NonNullable<Awaited<ReturnType<typeof readWorkflowDetail>>>

/** An edit by a person of the organization. */
async function editOf(workflowId: string): Promise<WorkflowEdit> {
  const { id: organizationId } = organization
  const user = await gateway.db.prisma.user.findFirstOrThrow({ where: { organizationId } })
  const principal = { organizationId, userId: user.id, role: 'owner', name: 'Ada', address: null } as const
  return { workflowId, principal, requestId: 'request-1' }
}

/** Changes by manifests: each alone changes a document, and the next is made on top of it. */
const CHANGES = {
  users: [
    { email: 'ada@acme.test', first_name: 'New' },
    { email: 'ada@acme.test', first_name: 'New', last_name: 'New' },
    // Only company_wide workflows list Bob.
    { email: 'bob@acme.test' },
    { email: 'c@acme.test' },
  ],
  workflow: [
    { name: 'New' },
    { description: 'New' },
    { is_active: false },
    { auto_run: { enabled: true, frequency: 'weekly' } },
    { auto_run: { enabled: false } },
    { created_at: '2025-01-01T00:00:00.000Z' },
    { updated_at: '2027-01-01T00:00:00.000Z' },
    { users: ['ada@acme.test', 'bob@acme.test'] },
    { users: ['bob@acme.test'] },
    { users: [] },
    { scope: 'new' },
    { scope: 'company_wide' },
  ],
  trigger: [
    { name: 'New' },
    { is_active: false },
    { trigger_source: { slug: 'new', name: 'New' } },
    { filters: { a: 1 } },
    { input_message: 'New' },
    { events: ['b', 'a'].map((slug) => ({ slug, name: slug })) },
    { events: ['b', 'a'].map((slug) => ({ slug, name: 'New' })) },
    { subagent_sources: [] },
  ],
  file: [{ name: 'new.md' }, { path: ['new'] }],
}

describe('a cached document', () => {
  test('is read again when a manifest changes anything that it shows', async () => {
    let [first, ofFirst, fileOfFirst] = [firstWorkflow(), trigger(ids.trigger), file()]
    const another = { id: newId(), name: 'b.md' }
    const changed = (change: object) => (first = { ...first, ...change })
    const manifests = [
      ...CHANGES.users.map((user) => ({ users: [user] })),
      ...CHANGES.workflow.map((change) => ({ workflows: [changed(change)] })),
      ...CHANGES.trigger.map((change) => ({
        workflows: [changed({ triggers: [(ofFirst = { ...ofFirst, ...change })] })],
      })),
      { workflows: [changed({ triggers: [ofFirst, trigger(newId())] })] },
      { workflows: [changed({ triggers: [ofFirst] })] },
      {
        workflows: [changed({ triggers: [] }), otherWorkflow({ triggers: [trigger(ids.otherTrigger), ofFirst] })],
      },
      { workflows: [changed({ files: [fileOfFirst, another] })] },
      ...CHANGES.file.map((change) => ({
        workflows: [changed({ files: [(fileOfFirst = { ...fileOfFirst, ...change }), another] })],
      })),
      { workflows: [changed({ files: [another] }), otherWorkflow({ files: [fileOfFirst] })] },
    ]
    expect(await listUnseen(manifests.map((manifest) => [manifest, () => apply(manifest)]))).toEqual([])
  })

  test('is read again when a person saves any part of the workflow', async () => {
    const { db } = gateway
    const edit = await editOf(ids.workflow)
    const saves: Record<string, (detail: Detail) => Promise<unknown>> = {
      people: ({ users_version: version }) => saveWorkflowUsers(db, edit, { userIds: [], version }),
      workflow: ({ version }) =>
        saveWorkflow(db, edit, { name: 'New', description: 'New', scope: 'company_wide', version }),
      activity: () => setWorkflowActive(db, edit, false),
      schedule: ({ auto_run: { version } }) => saveAutoRun(db, edit, { enabled: true, frequency: 'weekly', version }),
      trigger: ({ triggers: [stored] }) => saveTrigger(db, edit, ids.trigger, { ...stored!, name: 'New' }),
      noTrigger: ({ triggers: [stored] }) => deleteTrigger(db, edit, ids.trigger, stored!.version),
      file: ({ files: [stored] }) =>
        saveFile(db, edit, ids.file, { name: 'new.md', path: [], content: '', version: stored!.version }),
      noFile: ({ files: [stored] }) => deleteFile(db, edit, ids.file, stored!.version),
    }
    const read = async () => (await readWorkflowDetail(db, viewerOf(edit.principal), ids.workflow))!
    const changes = Object.entries(saves).map(([part, save]) => [part, async () => await save(await read())] as const)
    expect(await listUnseen(changes)).toEqual([])
  })

  test('is not read again when nothing changes that it shows', async () => {
    const first = await readAll()
    const before = await countReads()
    for (const change of [
      () => Promise.resolve(),
      () => run('UPDATE workflows SET auto_run_next_at = now() WHERE id = $1'),
      () => run('UPDATE workflows SET auto_run_anchor_at = now() WHERE id = $1'),
      () => run(`UPDATE organizations SET name = 'New' WHERE id = $1`, organization.id),
      () => gateway.apply({ users: USERS, workflows: [startableWorkflow()] }),
    ]) {
      await change()
      expect(await readAll()).toEqual(first)
      expect({ change, reads: await countReads() }).toEqual({ change, reads: before })
    }
  })

  test('is not answered for a deleted workflow, nor for a new one with its id', async () => {
    const expectGone = async () => {
      expect((await list()).map(({ id }) => id)).not.toContain(ids.workflow)
      expect((await gateway.get(`/v1/workflows/${ids.workflow}`, { key: organization.key })).status).toBe(404)
    }
    await readAll()
    for (const name of ['Second', 'Third']) {
      await run('DELETE FROM workflows WHERE id = $1')
      await expectGone()
      await apply({ workflows: [firstWorkflow({ name, triggers: [], files: [], users: [] })] })
      expect(await get(ids.workflow)).toMatchObject({ name, triggers: [], files: [], users: [] })
      expect((await list())[0]).toMatchObject({ id: ids.workflow, name, triggers: [], files: [], users: [] })
    }
    await deleteWorkflow(gateway.db, await editOf(ids.workflow))
    await expectGone()
  })

  test('is never answered to another organization', async () => {
    await readAll()
    const other = await gateway.apply({})
    const response = await gateway.get(`/v1/workflows/${ids.workflow}`, { key: other.key })
    expect(response.status).toBe(404)
    expect(response.text).not.toContain('Forward orders')
    expect((await gateway.get('/v1/workflows', { key: other.key, url: lister.url })).body.data).toEqual([])
  })
})

test('no document outlives its version while many manifests change one workflow', async () => {
  const changes = [
    () => ({ workflows: [firstWorkflow({ name: newId() })] }),
    () => ({ workflows: [firstWorkflow({ triggers: [trigger(ids.trigger, { name: newId() })] })] }),
    () => ({ workflows: [firstWorkflow({ files: [file({ name: newId() })] })] }),
    () => ({ users: [{ email: 'ada@acme.test', first_name: newId() }] }),
  ]
  const applyAll = async (writer: number): Promise<void> => {
    for (let index = 0; index < 6; index += 1) await apply(changes[(writer + index) % changes.length]!())
  }
  const applying = Promise.all([0, 1, 2, 3].map(applyAll))
  for (let round = 0; round < 20; round += 1) await readAll()
  await applying
  const [singly, page] = await readAll()
  expect(singly).toEqual(await readUncached(singly))
  expect(page).toEqual(singly)
})

describe('the cache', () => {
  test('is bounded in total and per document, and larger documents are answered without it', async () => {
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
      onRead: (from, count) => reads.push(...Array.from({ length: count }, () => from)),
    })
    for (const each of [...workflows, large, large]) {
      const json = await documents.find(id, each.id)
      expect(parse(json)).toEqual(await get(each.id, key))
    }
    expect(reads).toEqual(reads.map(() => 'database'))
    // A document takes about 11,000 bytes: two are in the cache.
    for (const each of workflows.slice(3).toReversed()) await documents.find(id, each.id)
    expect(reads.slice(8)).toEqual(['memory', 'memory', 'database'])
  })

  test('is filled by four statements at once, each of at most ten different documents', async () => {
    const workflows = Array.from({ length: 60 }, (_, index) => workflow(newId(), index, {}))
    const { id } = await gateway.apply({ users: [{ email: 'ada@acme.test' }], workflows })
    const sizes: number[] = []
    let [underWay, mostUnderWay] = [0, 0]
    // The first statements last until four are under way, and a fifth could have begun.
    const four = Promise.withResolvers<void>()
    const query = async (statement: { name: string; text: string; values: string[] }) => {
      if (statement.name !== 'find-workflows') return await gateway.db.pool.query(statement)
      sizes.push((JSON.parse(statement.values[0]!) as unknown[]).length)
      mostUnderWay = Math.max(mostUnderWay, ++underWay)
      if (underWay === 4) setImmediate(() => setImmediate(four.resolve))
      await four.promise
      return await gateway.db.pool.query(statement).finally(() => (underWay -= 1))
    }
    const documents = createWorkflowDocuments({ db: { pool: { query } } as unknown as TestGateway['db'] })
    const twice = workflows.flatMap((each) => [each.id, each.id])
    const found = await Promise.all(twice.map(async (each) => await documents.find(id, each)))
    expect(found.map((document) => parse(document).id)).toEqual(twice)
    expect(mostUnderWay).toBe(4)
    expect(sizes).toEqual(Array(12).fill(5))
  })

  test('leaves workflows out of a page that were deleted since it was listed', async () => {
    const documents = createWorkflowDocuments({ db: gateway.db })
    const deleted = { id: newId(), version: 'x' }
    const listed = [{ id: ids.other, version: 'x' }, deleted, { id: ids.workflow, version: 'x' }]
    const found = await documents.findListed(organization.id, listed, 100_000)
    expect(found.documents.map((document) => parse(document).id)).toEqual([ids.other, ids.workflow])
    expect(found.count).toBe(3)
  })

  test('reads at most about twice as much for a page as it has room for', async () => {
    const sizes = [3_000, 50_000, 3_000, ...Array<number>(37).fill(1_000)]
    const workflows = sizes.map((size, index) => workflow(newId(), index, { description: 'x'.repeat(size) }))
    const { id } = await gateway.apply({ users: [{ email: 'ada@acme.test' }], workflows })
    const listed = workflows.map((each) => ({ id: each.id, version: 'x' }))
    const read = async (maxBytes: number) => {
      let reads = 0
      const onRead = (from: string, count: number) => (reads += from === 'database' ? count : 0)
      const documents = createWorkflowDocuments({ db: gateway.db, onRead })
      const { documents: found, count } = await documents.findListed(id, listed, maxBytes)
      return { count, isWithin: joinJson(found.flat()).length <= maxBytes, reads }
    }
    expect(await read(1_000_000)).toEqual({ count: 40, isWithin: true, reads: 40 })
    expect(await read(60_000)).toEqual({ count: 4, isWithin: true, reads: 8 })
    expect(await read(10_000)).toEqual({ count: 1, isWithin: true, reads: 2 })
    // One workflow in any case.
    expect(await read(100)).toEqual({ count: 1, isWithin: false, reads: 2 })
  })

  test('has the users of company_wide workflows in their place with any names, also users that are too large for it', async () => {
    const names = ['ada', 'quote"users":null', 'bob ❤']
    const users = names.map((name, index) => ({ email: `user${index}@acme.test`, first_name: name }))
    const workflows = names.map((name, index) =>
      workflow(newId(), index, { name, description: '"users":null', scope: 'company_wide', users: [] }),
    )
    const { id, key } = await gateway.apply({ users, workflows })
    const listed = workflows.map((each) => ({ id: each.id, version: 'x' }))
    for (const maxUsersBytes of [100_000, 10]) {
      const documents = createWorkflowDocuments({ db: gateway.db, maxUsersBytes })
      const readPage = async () => (await documents.findListed(id, listed, 100_000)).documents.map(parse)
      const page = await readPage()
      expect(page).toEqual(await Promise.all(listed.map((each) => get(each.id, key))))
      expect(page[0]!.users.map(({ name }) => name)).toEqual(names)
      expect(await readPage()).toEqual(page)
    }
  })
})
