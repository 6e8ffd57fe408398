import { beforeAll, describe, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import type { QueryConfig } from 'pg'
import {
  deleteRun,
  deleteOldSearchChunks,
  findVisibleRuns,
  indexForSearch,
  listVisibleDeliveries,
  newId,
  searchVisibleRuns,
} from '../src/index.ts'
import { readFound, rowsWithIds } from '../src/organizations/index.ts'

const database = useTestDatabase()
const [organizationId, other, workflowId, sourceId] = [newId(), newId(), newId(), newId()]
const admin = { organizationId, memberId: null }
/** More than two chunks of each kind, of which the last is not full. */
const ROWS = 300
const TEXTS: Readonly<Record<number, string>> = {
  7: 'Order NEEDLE-7731\nfor Straße 5',
  8: 'NEEDLE-77310, C:\\new\\file',
  9: 'curl \\\n--header x',
  250: '注文番号です ABC注文 ÉCOLE',
  299: 'the newest rare',
}

beforeAll(async () => {
  const { pool, prisma } = database.db
  await prisma.organization.createMany({ data: [organizationId, other].map((id) => ({ id, name: 'A' })) })
  const workflow = { name: 'w', description: '', scope: 'company_wide', searchText: 'w', isActive: true }
  await prisma.workflow.create({ data: { id: workflowId, organizationId, ...workflow } })
  const source = { name: 's', nameKey: 's', description: '', endpointUrl: 'https://x', exampleRequestBody: {} }
  await prisma.webhookSource.create({ data: { id: sourceId, organizationId, ...source } })
  const session = newId()
  await prisma.session.create({ data: { id: session, organizationId, lastStartNumber: 1_000 } })
  const ids = Array.from({ length: ROWS }, newId)
  const texts = ids.map((_, n) => TEXTS[n] ?? `ordinary text ${n}`)
  await pool.query(
    `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, created_at)
     SELECT id, $1, $2, $3, n, 'api', context, 'r', now() - interval '1 hour' + n * interval '1 second'
     FROM unnest($4::uuid[], $5::text[]) WITH ORDINALITY AS row (id, context, n)`,
    [organizationId, workflowId, session, ids, texts],
  )
  // The same ids in each run of the test: a random one may have 7731 as one of its parts, and is found by it.
  await pool.query(
    `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, request_body, run_id, created_at)
     SELECT md5(n::text)::uuid, $1, $2, 'payload', 'accepted', 200, body, id, now() - interval '1 hour' + n * interval '1 second'
     FROM unnest($3::uuid[], $4::json[]) WITH ORDINALITY AS row (id, body, n)`,
    [organizationId, sourceId, ids, texts.map((text) => JSON.stringify({ text: `>${text}<` }))],
  )
  await indexForSearch(database.db)
})

/** The texts of the runs that are found, and of the deliveries. */
async function found(search: string, more: object = {}) {
  const runs = await searchVisibleRuns(database.db, admin, { limit: 100, search, ...more })
  const deliveries = await listVisibleDeliveries(database.db, admin, { limit: 100, search, ...more })
  const lines = (await findVisibleRuns(database.db, admin, runs.rows)).map((run) => run.first_line)
  return { lines, bodies: deliveries.rows.map((row) => String(row.request_body?.['text']).slice(1).split(/[\n<]/)[0]) }
}

const countChunks = async () => (await database.db.pool.query('SELECT FROM search_chunks')).rowCount

describe('The search index', () => {
  test('has whole chunks, and the same search without it finds the same', async () => {
    expect(await countChunks()).toBe(4)
    const searches = ['needle-7731', 'ordinary 200', 'rare', '299', 'nowhere', 'text']
    const indexed = await Promise.all(searches.map((search) => found(search)))
    await database.db.pool.query('CREATE TABLE kept AS SELECT * FROM search_chunks')
    await database.db.pool.query('DELETE FROM search_chunks')
    expect(await Promise.all(searches.map((search) => found(search)))).toEqual(indexed)
    await database.db.pool.query('INSERT INTO search_chunks SELECT * FROM kept')
    expect(indexed.map(({ lines }) => lines.length)).toEqual([1, 1, 1, 0, 0, 100])
  })

  test.each([
    ['NEEDLE-7731', ['Order NEEDLE-7731']],
    ['#needle-7731,', ['Order NEEDLE-7731']],
    ['7731', ['Order NEEDLE-7731']],
    ['needle', ['NEEDLE-77310, C:\\new\\file', 'Order NEEDLE-7731']],
    ['for straße', ['Order NEEDLE-7731']],
    ['5 order', ['Order NEEDLE-7731']],
    ['needle-77', []],
    ['--header', ['curl \\']],
    ['new', ['NEEDLE-77310, C:\\new\\file']],
    ['注文', ['注文番号です ABC注文 ÉCOLE']],
    ['abc', ['注文番号です ABC注文 ÉCOLE']],
    ['école', ['注文番号です ABC注文 ÉCOLE']],
    ['.*', []],
    ['needle-.*', ['NEEDLE-77310, C:\\new\\file', 'Order NEEDLE-7731']],
    ['needle(7', []],
  ])('finds whole words and numbers, in any order and case: %s', async (search, expected) => {
    expect(await found(search)).toEqual({ lines: expected, bodies: expected })
  })

  test('finds a run and a delivery by the last 8 characters of its id', async () => {
    const { rows } = await listVisibleDeliveries(database.db, admin, { limit: 1, search: 'needle-7731' })
    const { id, run_id: runId } = rows[0]!
    for (const part of [id, id.slice(-8)]) {
      const again = await listVisibleDeliveries(database.db, admin, { limit: 9, search: part })
      expect(again.rows.map((row) => row.id)).toEqual([id])
    }
    expect((await searchVisibleRuns(database.db, admin, { limit: 9, search: runId!.slice(-8) })).rows).toEqual([runId])
  })

  test('pages through rows that are in the index and newer ones, each once, newest first', async () => {
    const ids: string[] = []
    for (let after: { createdAt: Date; id: string } | undefined; ;) {
      const query = { limit: 7, search: 'text', after, sourceId, workflowId }
      const page = await listVisibleDeliveries(database.db, admin, query)
      ids.push(...page.rows.map((row) => row.id))
      if (!page.next) break
      after = page.next
    }
    expect(ids).toHaveLength(ROWS)
    const all = await listVisibleDeliveries(database.db, admin, { limit: ROWS + 1 })
    expect(ids).toEqual(all.rows.map((row) => row.id))
  })

  test.each(['deliveries', 'starts'])('reads %s of chunks by their ids, as does a generic plan', async (table) => {
    const client = await database.db.pool.connect()
    const rows = `SELECT * FROM ${rowsWithIds(table, Array.from({ length: 2_048 }, newId))}`
    await client.query(`PREPARE read_${table} AS ${rows} WHERE organization_id = $1 AND (created_at, id) < ($2, $3)`)
    const { rows: plan } = await client.query(`EXPLAIN EXECUTE read_${table} ('${newId()}', now(), '${newId()}')`)
    client.release(true)
    expect(JSON.stringify(plan)).toContain(`Index Scan using ${table}_pkey`)
  })

  test('reads no row twice when its chunk is written meanwhile', async () => {
    const row = { createdAt: new Date(), id: newId(), isVisible: true }
    const query = { organizationId, kind: 'runs', words: new Set(['text']) } as const
    const range = { limit: 9, after: undefined, since: undefined, until: undefined }
    const page = await readFound(database.db, query, range, async (candidates) => {
      if ('ids' in candidates) return candidates.ids.includes(row.id) ? [row] : []
      await database.db.pool.query(
        `INSERT INTO search_chunks (organization_id, kind, first_at, first_id, last_at, last_id, ids, words)
         VALUES ($1, 'runs', $2, $3, $2, $3, ARRAY[$3::uuid], '\\xff')`,
        [organizationId, row.createdAt, row.id],
      )
      return [row]
    })
    expect(page.rows).toEqual([row.id])
    await database.db.pool.query('DELETE FROM search_chunks WHERE first_id = $1', [row.id])
  })

  test('finds nothing of another organization, nor outside of the filters', async () => {
    const elsewhere = { organizationId: other, memberId: null }
    const query = { limit: 9, search: 'needle' }
    expect((await searchVisibleRuns(database.db, elsewhere, query)).rows).toEqual([])
    expect((await listVisibleDeliveries(database.db, elsewhere, { ...query, sourceId })).rows).toEqual([])
    const filters = [{ workflowId: newId() }, { since: new Date() }, { until: new Date(0) }]
    for (const filter of filters) expect(await found('needle', filter)).toEqual({ lines: [], bodies: [] })
    expect((await found('needle', { workflowId })).lines).toHaveLength(2)
  })

  test('loses a deleted run and its deliveries with their words, and still finds the others of their chunks', async () => {
    const { pool } = database.db
    const [id] = (await searchVisibleRuns(database.db, admin, { limit: 1, search: 'needle-77310' })).rows
    const end = `UPDATE starts SET status = 'succeeded', started_at = created_at, finished_at = now() WHERE id = $1`
    await pool.query(end, [id])
    expect(await deleteRun(database.db, id!)).toBe('deleted')
    const { rows } = await pool.query(`SELECT cardinality(ids) AS rows, encode(words, 'hex') AS words FROM search_chunks
      WHERE octet_length(words) = 1 ORDER BY kind`)
    expect(rows).toEqual([127, 127].map((count) => ({ rows: count, words: 'ff' })))
    const [lines, bodies] = [['Order NEEDLE-7731'], ['Order NEEDLE-7731']]
    expect(await found('needle')).toEqual({ lines, bodies })
  })

  test('loses the chunks of deleted rows, and keeps the others', async () => {
    await database.db.pool.query(`DELETE FROM starts WHERE number < 150`)
    expect(await deleteOldSearchChunks(database.db, 100)).toBe(1)
    expect(await countChunks()).toBe(3)
    expect((await found('text')).lines).toHaveLength(100)
  })

  test('takes the rows of many sources in their order, and lets each organization have its turn', async () => {
    const { pool } = database.db
    const sources = [newId(), newId(), newId()]
    await pool.query(
      `INSERT INTO webhook_sources (id, organization_id, name, name_key, description, endpoint_url, example_request_body)
       SELECT id, CASE n WHEN 3 THEN $2::uuid ELSE $1 END, n, n, '', 'https://x', '{}'
       FROM unnest($3::uuid[]) WITH ORDINALITY AS row (id, n)`,
      [organizationId, other, sources],
    )
    await pool.query(
      `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, request_body, created_at)
       SELECT gen_random_uuid(), CASE WHEN n > 5632 THEN $2::uuid ELSE $1 END,
         ($3::uuid[])[CASE WHEN n > 5632 THEN 3 WHEN n % 5 = 0 THEN 2 ELSE 1 END], 'payload', 'accepted', 200, '{}',
         now() - interval '30 minutes' + n * interval '0.1 second'
       FROM generate_series(1, 5760) n`,
      [organizationId, other, sources],
    )
    let pauses = 0
    await indexForSearch(database.db, { pace: async () => void (pauses += 1) })
    expect(pauses).toBeGreaterThan(5_760 / 128)
    const { rows } = await pool.query<{ organization: string; written: number; ids: string[] }>(
      `SELECT organization_id AS organization, xmin::text::float8 AS written, ids FROM search_chunks
       WHERE kind = 'deliveries' ORDER BY first_at`,
    )
    const own = rows.filter(({ organization }) => organization === organizationId).flatMap(({ ids }) => ids)
    const sorted = await pool.query<{ id: string }>(
      'SELECT id FROM deliveries WHERE organization_id = $1 ORDER BY created_at, id LIMIT $2',
      [organizationId, own.length],
    )
    expect(own.length).toBeGreaterThan(5_632)
    expect(own).toEqual(sorted.rows.map(({ id }) => id))
    expect(rows.toSorted((a, b) => a.written - b.written).at(-1)?.organization).toBe(organizationId)
  })

  test('reads texts of a bounded size at once', async () => {
    const { pool, prisma } = database.db
    const session = newId()
    await prisma.session.create({ data: { id: session, organizationId, lastStartNumber: 200 } })
    await pool.query(
      `INSERT INTO starts (id, organization_id, workflow_id, session_id, number, origin, context, request_id, created_at)
       SELECT gen_random_uuid(), $1, $2, $3, n, 'api', repeat('long' || n || ' ', 4000), 'r', now() - interval '1 minute'
       FROM generate_series(1, 200) n`,
      [organizationId, workflowId, session],
    )
    const sizes: number[] = []
    const connect = async () => {
      const client = await pool.connect()
      const query = async (config: QueryConfig, values?: unknown[]) => {
        const result = await client.query<{ text?: string }>(config, values)
        sizes.push(result.rows.reduce((sum, { text = '' }) => sum + text.length, 0))
        return result
      }
      return Object.assign(Object.create(client) as typeof client, { query })
    }
    await indexForSearch({ pool: { connect } } as unknown as typeof database.db)
    expect(Math.max(...sizes)).toBeLessThan(1_100_000)
    const { rows } = await pool.query<{ id: string; isIndexed: boolean }>(
      `SELECT id, EXISTS (SELECT FROM search_chunks WHERE id = ANY (ids)) AS "isIndexed"
       FROM starts WHERE session_id = $1 ORDER BY created_at, id`,
      [session],
    )
    const count = rows.filter(({ isIndexed }) => isIndexed).length
    expect(count).toBeGreaterThan(70)
    expect(rows.findIndex(({ isIndexed }) => !isIndexed)).toBe(count)
    expect((await found('long7')).lines).toHaveLength(1)
  })

  test('an organization with long texts gives others their turn after each chunk of them', async () => {
    const { pool, prisma } = database.db
    const [long, short] = [newId(), newId()].toSorted() as [string, string]
    const source = { name: 's', nameKey: 's', description: '', endpointUrl: 'https://x', exampleRequestBody: {} }
    for (const id of [long, short]) {
      await prisma.organization.create({ data: { id, name: 'B' } })
      await prisma.webhookSource.create({ data: { id, organizationId: id, ...source } })
      await pool.query(
        `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, request_body, created_at)
         SELECT gen_random_uuid(), $1, $1, 'payload', 'accepted', 200, to_json(repeat('long ', $2)),
           now() - interval '1 hour' + n * interval '1 second' FROM generate_series(1, $3) n`,
        [id, id === long ? 20_000 : 1, id === long ? 256 : 128],
      )
    }
    expect(await indexForSearch(database.db)).toBe(true)
    const { rows } = await pool.query<{ id: string }>(
      'SELECT organization_id AS id FROM search_chunks WHERE organization_id IN ($1, $2) ORDER BY xmin::text::float8',
      [long, short],
    )
    expect(rows.map(({ id }) => id)).toEqual([long, short, long])
  })
})
