import { beforeAll, describe, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import type { Database } from '../src/connection/client.ts'
import { newId } from '../src/connection/ids.ts'
import { workflowSearchText } from '../src/connection/search-text.ts'
import { findWorkflows, listWorkflows, type WorkflowDocument } from '../src/workflows/workflows.ts'
import { explain, rowsReadOf, sequentialScans } from './support/explain.ts'

const COUNT = 6_000
const database = useTestDatabase({ statementTimeoutMs: 60_000 })
let db: Database
let organizationId: string

/**
 * Many workflows: one in 1,500 is rare, every second one even, the second half late. Another organization has the same.
 */
beforeAll(async () => {
  db = database.db
  for (const name of ['Acme', 'Other']) {
    organizationId = newId()
    await db.pool.query('INSERT INTO organizations (id, name) VALUES ($1, $2)', [organizationId, name])
    await db.pool.query(
      `INSERT INTO workflows (id, organization_id, name, description, scope, search_text, is_active, created_at)
       SELECT gen_random_uuid(), $1, name, 'd', 'only_me', name || $3 || 'd', true, timestamptz '2026-01-01' + n * interval '1 s'
       FROM (SELECT n, concat(CASE n % 2 WHEN 0 THEN 'even' ELSE 'odd' END, CASE WHEN n % 1500 = 1499 THEN ' rarity' END,
                              CASE WHEN n > $2 / 2 THEN ' late' END, ' ', n) AS name
             FROM generate_series(1, $2::int) AS n) AS named`,
      [organizationId, COUNT, workflowSearchText('', '')],
    )
  }
  await db.pool.query('ANALYZE')
}, 120_000)

const explainSearch = (search: string) =>
  explain(db, (on) => listWorkflows(on, { organizationId, memberId: null }, { limit: 25, search }))
const parse = ({ start, users, end }: WorkflowDocument) =>
  JSON.parse(`${start}${String(users?.json ?? '')}${end}`) as { id: string; name: string }

describe('findWorkflows', () => {
  test('reads files that are far apart in the order of their index, without sorting', async () => {
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
    const lookUps = rows.slice(0, 25).map(({ id }) => ({ organizationId: acme, workflowId: id }))
    const plan = await explain(db, (on) => findWorkflows(on, lookUps))
    expect(plan.filter(({ relation }) => relation === 'files')).toEqual([
      expect.objectContaining({ type: 'Index Scan', index: 'files_workflow_id_path_name_key', rowsRead: 25 * 20 }),
    ])
  })

  test('resolves to the documents in the order of the look-ups, with null for workflows that the organization does not have', async () => {
    const { workflows } = await listWorkflows(db, { organizationId, memberId: null }, { limit: 3 })
    const ids = [workflows[2]!.id, newId(), workflows[0]!.id, workflows[2]!.id]
    const found = await findWorkflows(
      db,
      ids.map((workflowId) => ({ organizationId, workflowId })),
    )
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
  test.each([
    ['rarity', 'rare'],
    ['y', 'one character, rare'],
    ['ty', 'two characters, rare'],
    ['no such', 'nothing'],
    ['#', 'one character that nothing has'],
    ['#!', 'two characters that nothing has'],
  ])('for %j (%s) reads the next rows, and then what the search index finds', async (search) => {
    const plan = await explainSearch(search)
    expect(plan.some(({ index }) => index === 'workflows_search')).toBe(true)
    expect(sequentialScans(plan)).toEqual([])
    expect(rowsReadOf(plan, 'workflows')).toBeLessThanOrEqual(300)
  })

  test.each(['even', 'e', 'ev', '1'])('for %j, which is everywhere, ends with the next rows', async (search) => {
    const plan = await explainSearch(search)
    expect(plan.some(({ index }) => index === 'workflows_search')).toBe(false)
    expect(rowsReadOf(plan, 'workflows')).toBeLessThanOrEqual(302)
  })

  test.each(['17', '12', '11'])('for %j, which is not rare, goes on along the list', async (search) => {
    const plan = await explainSearch(search)
    expect(plan.some(({ index }) => index === 'workflows_search')).toBe(false)
    expect(rowsReadOf(plan, 'workflows')).toBeLessThanOrEqual(2_500)
  })

  test('for matches that are far down the list uses the search index', async () => {
    const plan = await explainSearch('late')
    expect(plan.some(({ index }) => index === 'workflows_search')).toBe(true)
    const page = await listWorkflows(db, { organizationId, memberId: null }, { limit: 2, search: 'LATE' })
    const found = await findWorkflows(
      db,
      page.workflows.map(({ id }) => ({ organizationId, workflowId: id })),
    )
    expect(found.map((each) => parse(each!).name)).toEqual([`odd late ${COUNT / 2 + 1}`, `even late ${COUNT / 2 + 2}`])
  })

  test('reads only the own organization’s entries of the search index', async () => {
    const plan = await explainSearch('rarity')
    const entries = plan.find(({ index }) => index === 'workflows_search')
    expect(entries?.rowsRead).toBe(COUNT / 1_500)
  })
})
