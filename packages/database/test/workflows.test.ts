import { beforeAll, describe, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import {
  type Database,
  deleteWorkflow,
  type EditingPerson,
  findWorkflows,
  listWorkflowRows,
  listWorkflows,
  newId,
  purgeDeletedWorkflows,
  readReadiness,
  readWorkflowDetail,
  recordAppStart,
  saveWorkflow,
  viewerOf,
  type WorkflowDocument,
  workflowSearchText,
} from '../src/index.ts'
import { readsOf as countReads } from './support/count-reads.ts'

const COUNT = 6_000
const RUNS = 3_000
const database = useTestDatabase({ statementTimeoutMs: 60_000 })
const organizationId = newId()
const person = (role: 'owner' | 'member'): EditingPerson => ({
  organizationId,
  userId: newId(),
  role,
  name: 'Ada',
  address: null,
})
const [owner, member] = [person('owner'), person('member')]
const admin = { organizationId, memberId: null }
let db: Database
/** In the order of the list: six, that all are behind thousands that the member does not see. */
let visible: { id: string; name: string }[]

/**
 * One workflow in 1,500 is rare, every second one even, the second half late. Every 1,000th is visible to the member:
 * most list it, the last one is company-wide, and has runs and parts. All 500 of another organization are rare.
 */
beforeAll(async () => {
  db = database.db
  const run = (sql: string, ...values: unknown[]) => db.pool.query(sql, values)
  const createWorkflows = async (id: string, count: number, rareEvery: number) => {
    await run(`INSERT INTO organizations (id, name) VALUES ($1, 'Acme')`, id)
    const { rows } = await db.pool.query<{ id: string; name: string }>(
      `INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active, created_at)
       SELECT gen_random_uuid(), $1, name, 'd', CASE n WHEN $2::int THEN 'company_wide' ELSE 'only_me' END, name || $3 || 'd', true,
         timestamptz '2026-01-01' + n * interval '1 s'
       FROM (SELECT n, concat('w', n, CASE n % 2 WHEN 0 THEN ' even' ELSE ' odd' END, CASE n % $4 WHEN 0 THEN ' rarity' END,
                              CASE WHEN n > $2 / 2 THEN ' late' END) AS name
             FROM generate_series(1, $2::int) n) AS named
       RETURNING id, name`,
      [id, count, workflowSearchText('', ''), rareEvery],
    )
    return rows
  }
  await createWorkflows(newId(), 500, 1)
  const rows = await createWorkflows(organizationId, COUNT, 1_500)
  await run(
    `INSERT INTO users (id, organization_id, email) SELECT id, $1, id::text FROM unnest($2::uuid[]) AS id`,
    organizationId,
    [owner.userId, member.userId],
  )
  visible = rows.filter((_row, index) => (index + 1) % 1_000 === 0)
  await run(
    `INSERT INTO workflow_users (organization_id, workflow_id, user_id)
     SELECT $1::uuid, id, $2::uuid FROM workflows WHERE organization_id = $1 UNION ALL SELECT $1, id, $3 FROM unnest($4::uuid[]) AS id`,
    organizationId,
    owner.userId,
    member.userId,
    visible.slice(0, -1).map(({ id }) => id),
  )
  await run(
    `INSERT INTO triggers (id, workflow_id, is_active, source_slug, source_name)
     SELECT gen_random_uuid(), id, true, 'api', 'API' FROM workflows`,
  )
  await run(`INSERT INTO files (id, workflow_id, name, content) SELECT gen_random_uuid(), id, 'a', 'x' FROM workflows`)
  const sessionId = newId()
  await run('INSERT INTO sessions (id, organization_id) VALUES ($1, $2)', sessionId, organizationId)
  await run(
    `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, status,
       finished_at, error)
     SELECT gen_random_uuid(), $1, workflow_id, $2, row_number() OVER (), 'api', 'go', 'r', status, now(),
       CASE status WHEN 'failed' THEN 'why' END
     FROM (SELECT unnest($3::uuid[]) AS workflow_id) AS workflow,
       (SELECT CASE n % 2 WHEN 0 THEN 'failed' ELSE 'succeeded' END AS status FROM generate_series(1, $4::int) n) AS run`,
    organizationId,
    sessionId,
    [visible.at(-1)!.id, rows[0]!.id],
    RUNS,
  )
})

const TABLES = ['workflows', 'triggers', 'files', 'workflow_users', 'users', 'sessions', 'starts']

/** What the call resolves to, the rows that it reads of each table, and the tables that it scans. */
async function readsOf<Result>(call: (on: Pick<Database, 'pool' | 'prisma'>) => Promise<Result>) {
  const client = await db.pool.connect()
  const { result, reads } = await countReads(client, TABLES, call).finally(() => client.release())
  const rows = (table: string) => reads.find((each) => each.table === table)!.rows
  return { result, rows, scanned: reads.filter(({ scans }) => scans > 0) }
}

describe.each(['planned without statistics', 'planned with statistics'])('%s', (when) => {
  beforeAll(async () => {
    if (when === 'planned with statistics') await db.pool.query('ANALYZE')
  })

  test.each([
    ['the list', undefined, 1_000],
    ['a search for a frequent text', 'W', 1_000],
    ['a search for a rare text', 'RARITY', 3_000],
  ])('%s finds the few workflows that a member sees among many, and reads few others', async (_what, search, every) => {
    const { result, rows, scanned } = await readsOf((on) =>
      listWorkflowRows(on, viewerOf(member), { limit: 25, search }),
    )
    const expected = visible.filter(({ name }) => Number.parseInt(name.slice(1), 10) % every === 0)
    expect(result).toMatchObject({ rows: expected.map(({ id }) => ({ id })), next: undefined })
    expect(scanned).toEqual([])
    expect(rows('workflows')).toBeLessThan(300)
    expect(rows('workflow_users')).toBeLessThan(300)
    expect(rows('starts')).toBeLessThanOrEqual(1)
  })

  test('a search whose first rows have enough for a member goes on without what the member does not see', async () => {
    const early = person('member')
    await db.prisma.user.create({ data: { id: early.userId, organizationId, email: early.userId } })
    const { rows: first } = await db.pool.query<{ workflow_id: string }>(
      `INSERT INTO workflow_users (organization_id, workflow_id, user_id)
       SELECT $1, id, $2 FROM (SELECT id FROM workflows WHERE organization_id = $1 ORDER BY created_at LIMIT 4) AS workflow
       RETURNING workflow_id`,
      [organizationId, early.userId],
    )
    const { rows } = await listWorkflowRows(db, viewerOf(early), { limit: 25, search: 'w' })
    const seen = [...first.map(({ workflow_id }) => workflow_id), visible.at(-1)!.id]
    expect(rows.map(({ id }) => id).toSorted()).toEqual(seen.toSorted())
  })

  test('the pages of a member are those of the whole list', async () => {
    const seen: string[] = []
    let after: { createdAt: Date; id: string } | undefined
    do {
      const page = await listWorkflowRows(db, viewerOf(member), { limit: 2, after })
      seen.push(...page.rows.map(({ id }) => id))
      after = page.next
    } while (after)
    expect(seen).toEqual(visible.map(({ id }) => id))
  })

  test.each<
    [string, (on: Pick<Database, 'pool' | 'prisma'>, edit: Parameters<typeof deleteWorkflow>[1]) => Promise<unknown>]
  >([
    ['reading', (on, { workflowId }) => readWorkflowDetail(on, viewerOf(member), workflowId)],
    ['the readiness', (on, { workflowId }) => readReadiness(on, viewerOf(member), workflowId)],
    [
      'a save',
      async (on, edit) => {
        const { version } = (await readWorkflowDetail(on, viewerOf(member), edit.workflowId))!
        await saveWorkflow(on, edit, { name: 'x', description: 'd', scope: 'company_wide', version })
      },
    ],
    ['a start', (on, edit) => recordAppStart(on, { ...edit, runId: newId(), sessionId: null, context: 'go' })],
    ['a deletion', (on, edit) => deleteWorkflow(on, edit)],
  ])('%s of a workflow reads only its own rows', async (_what, call) => {
    const edit = { workflowId: visible.at(-1)!.id, principal: member, requestId: 'r' }
    const { rows, scanned } = await readsOf((on) => call(on, edit))
    expect(scanned).toEqual([])
    for (const table of TABLES) expect(rows(table)).toBeLessThan(20)
  })

  test('a batch of a purge reads as many runs as it deletes', async () => {
    const { result, rows, scanned } = await readsOf(async (on) => {
      await deleteWorkflow(on, { workflowId: visible.at(-1)!.id, principal: owner, requestId: 'r' })
      return await purgeDeletedWorkflows(on, 100)
    })
    expect(result).toBe(100)
    expect(scanned).toEqual([])
    // Found, deleted, and one look at whether others are left.
    expect(rows('starts')).toBeLessThan(300)
  })
})

/** The rows of `workflows` that a search reads, by indexes only. */
async function readsOfSearch(search: string): Promise<number> {
  const { rows, scanned } = await readsOf((on) => listWorkflows(on, admin, { limit: 25, search }))
  expect(scanned).toEqual([])
  return rows('workflows')
}
const find = async (ids: string[], of = organizationId, on: Pick<Database, 'pool'> = db) =>
  await findWorkflows(
    on,
    ids.map((workflowId) => ({ organizationId: of, workflowId })),
  )
const parse = ({ start, users, end }: WorkflowDocument) =>
  JSON.parse(`${start}${String(users?.json ?? '')}${end}`) as { id: string; name: string }

describe('findWorkflows', () => {
  test('reads files that are far apart by their index, and no others', async () => {
    const acme = newId()
    await db.pool.query(`INSERT INTO organizations (id, name) VALUES ($1, 'Acme')`, [acme])
    const { rows } = await db.pool.query<{ id: string }>(
      `INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active)
       SELECT gen_random_uuid(), $1, 'w', 'd', 'only_me', 'w', true FROM generate_series(1, 50) RETURNING id`,
      [acme],
    )
    // Consecutive files belong to different workflows, and each page has one file.
    await db.pool.query(
      `INSERT INTO files (id, workflow_id, name, content)
       SELECT gen_random_uuid(), id, 'file' || n, (SELECT string_agg(md5(id::text || n || k), '') FROM generate_series(1, 60) k)
       FROM generate_series(1, 20) n, workflows WHERE organization_id = $1`,
      [acme],
    )
    await db.pool.query('ANALYZE files')
    const ids = rows.slice(0, 25).map(({ id }) => id)
    const { rows: rowsOf, scanned } = await readsOf((on) => find(ids, acme, on))
    expect([rowsOf('files'), scanned]).toEqual([25 * 20, []])
  })

  test('resolves to the documents in the order of the look-ups, with null for workflows that the organization does not have', async () => {
    const { workflows } = await listWorkflows(db, admin, { limit: 3 })
    const ids = [workflows[2]!.id, newId(), workflows[0]!.id, workflows[2]!.id]
    const found = await find(ids)
    expect(found.map((each) => each && parse(each).id)).toEqual([ids[0], null, ids[2], ids[3]])
    expect(found.map((each) => each && each.version)).toEqual([
      workflows[2]!.version,
      null,
      workflows[0]!.version,
      workflows[2]!.version,
    ])
  })
})

describe('a search', () => {
  // Without the entries of the changes that were rolled back.
  beforeAll(async () => void (await db.pool.query('VACUUM (INDEX_CLEANUP ON) workflows')))

  test.each([
    ['rarity', 'rare'],
    ['y', 'one character, rare'],
    ['ty', 'two characters, rare'],
    ['no such', 'nothing'],
    ['#', 'one character that nothing has'],
    ['#!', 'two characters that nothing has'],
  ])(
    'for %j (%s) reads the next rows, and then those that the search index finds of the organization',
    async (search) => {
      // The 250 next ones, and four.
      expect(await readsOfSearch(search)).toBeLessThanOrEqual(256)
    },
  )

  test.each(['even', 'e', 'ev', '1'])('for %j, which is everywhere, ends with the next rows', async (search) => {
    expect(await readsOfSearch(search)).toBeLessThanOrEqual(250)
  })

  test.each(['17', '12', '11'])('for %j, which is not rare, goes on along the list', async (search) => {
    expect(await readsOfSearch(search)).toBeLessThanOrEqual(2_500)
  })

  test('finds matches that are far down the list', async () => {
    const page = await listWorkflows(db, admin, { limit: 2, search: 'LATE' })
    const found = await find(page.workflows.map(({ id }) => id))
    const names = [`w${COUNT / 2 + 1} odd late`, `w${COUNT / 2 + 2} even late`]
    expect(found.map((each) => parse(each!).name)).toEqual(names)
  })
})
