import { statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { migrate } from '@workflow-service/database'
import { type PrivatePostgres, startPostgres } from '@workflow-service/testkit'
import { Client } from 'pg'
import { POSTGRES_SETTINGS } from '../../shared/system.ts'
import { atLeast, atMost, type BenchOptions, compare, type Figure } from '../figure.ts'
import { readLists, retire, runStarts, sweep } from '../scale/calls.ts'
import { measureRetentionLoad } from '../scale/retention-load.ts'
import { type LargeTables, SEEDED_DAYS, seedLargeTables } from '../scale/seed-large-tables.ts'
import { measureDatabase, type MeasuredDatabase, type StatementCost, unmeasured } from '../scale/statement-cost.ts'

const SMALL_ROWS = 20_000
/** Measured rounds for each of `BenchOptions.rounds`. */
const ROUNDS = 10
const RETENTION_BATCHES = 10
const SMALL_BATCH = 40
const RETENTION_DAYS = SEEDED_DAYS / 2
/** Measured: 2.0 kB, and room for what is measured. */
const BYTES_PER_ROW = 2_500
const SPARE_BYTES = 4 * 2 ** 30
const LOAD_SECONDS_PER_ROUND = 40
const MAX_RATIO = 1.5

/** A database with what its calls need. */
interface Filled {
  readonly name: string
  readonly tables: LargeTables
  readonly measured: MeasuredDatabase
  readonly seen: Parameters<typeof readLists>[2]
}

/**
 * Measures hot paths, lists, sweeps and the retention with `rows` starts and deliveries against 20,000 of them: two
 * databases of one server, statement by statement in turns.
 */
export async function measureScale(options: BenchOptions): Promise<Figure[]> {
  const { rows, rounds, log } = options
  await checkDisk(rows)
  await using stack = new AsyncDisposableStack()
  const postgres = stack.adopt(await startPostgres({ settings: POSTGRES_SETTINGS }), (server) => server.stop())
  await changeWalLevel(postgres, 'minimal')
  await fill(postgres, 'small', SMALL_ROWS, options)
  const tables = await fill(postgres, 'large', rows, options)
  await changeWalLevel(postgres, 'replica')
  const [small, large] = [await open(postgres, 'small', tables), await open(postgres, 'large', tables)]
  for (const { measured } of [small, large]) stack.defer(() => measured.close())
  const { rows: sizes } = await large.measured.db.pool.query<{ bytes: number }>(
    'SELECT pg_database_size(current_database())::float8 AS bytes',
  )
  const { bytes } = sizes[0]!
  await measureCalls(small, large, options)
  await measureRetention(small, large)
  log('200 starts per second, with and without retention')
  const load = await measureRetentionLoad(urlOf(postgres.url, 'large'), tables, {
    seconds: LOAD_SECONDS_PER_ROUND * rounds,
    olderThanDays: RETENTION_DAYS,
  })
  const stored = `stored per start, ${rows.toLocaleString('en')} starts`
  const loaded = 'all statements of 20 starts at 200 starts/s, with retention, p95'
  const deleted = 'starts that the retention deletes, meanwhile'
  return [
    compare(stored, bytes / rows, 'bytes', ['all together, GiB', bytes / 2 ** 30]),
    ...toFigures(rows, small.measured.costs(), large.measured.costs()),
    compare(loaded, load.p95WithMs, 'ms', ['without retention', load.p95WithoutMs]),
    compare(deleted, load.retiredPerSecond, '/s', ['starts', load.startsPerSecond], atLeast(1)),
  ]
}

async function checkDisk(rows: number): Promise<void> {
  const { bavail, bsize } = await statfs(tmpdir())
  const [free, needed] = [bavail * bsize, rows * BYTES_PER_ROW + SPARE_BYTES]
  if (free >= needed) return
  throw new Error(
    `${rows} rows need ${toGib(needed)} GiB in ${tmpdir()}, which has ${toGib(free)}. Choose fewer with --rows.`,
  )
}

function toGib(bytes: number): string {
  return (bytes / 2 ** 30).toFixed(1)
}

function urlOf(server: string, database: string): string {
  const url = new URL(server)
  url.pathname = database
  return url.href
}

async function withClient<Result>(url: string, work: (client: Client) => Promise<Result>): Promise<Result> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** `minimal` leaves the seeded rows out of the write-ahead log; what is measured has the default. */
async function changeWalLevel(postgres: PrivatePostgres, level: 'minimal' | 'replica'): Promise<void> {
  await withClient(postgres.adminUrl, async (client) => {
    await client.query(`ALTER SYSTEM SET wal_level = ${level}`)
    await client.query(`ALTER SYSTEM SET max_wal_senders = ${level === 'minimal' ? 0 : 10}`)
  })
  await postgres.restart()
}

async function fill(
  postgres: PrivatePostgres,
  name: string,
  rows: number,
  { log }: BenchOptions,
): Promise<LargeTables> {
  await withClient(postgres.adminUrl, async (client) => {
    await client.query(`CREATE DATABASE ${name} OWNER ${new URL(postgres.url).username}`)
  })
  await migrate({ databaseUrl: urlOf(postgres.url, name) })
  return await withClient(urlOf(postgres.adminUrl, name), (client) => seedLargeTables(client, rows, log))
}

async function open(postgres: PrivatePostgres, name: string, tables: LargeTables): Promise<Filled> {
  const measured = await measureDatabase(urlOf(postgres.url, name), urlOf(postgres.adminUrl, name))
  const { rows } = await measured.db.pool.query<{ runId: string; deliveryId: string }>(
    `SELECT start.id AS "runId", delivery.id AS "deliveryId"
     FROM (SELECT id FROM starts WHERE organization_id = $1 ORDER BY created_at DESC LIMIT 1 OFFSET 100) AS start
     JOIN deliveries AS delivery ON delivery.run_id = start.id`,
    [tables.organizationId],
  )
  const [newest] = rows
  if (!newest) throw new Error('No run was seeded')
  return { name, tables, measured, seen: { seededDays: SEEDED_DAYS, ...newest } }
}

async function measureCalls(small: Filled, large: Filled, { rounds, log }: BenchOptions): Promise<void> {
  for (let round = 0; round <= rounds * ROUNDS; round += 1) {
    if (round % ROUNDS === 1) log(`statements: round ${round} of ${rounds * ROUNDS}`)
    for (const { measured, tables, seen } of [small, large]) {
      // The first round plans the statements.
      const measure = round === 0 ? unmeasured : measured.measure
      await runStarts(measured.db, tables, 1, measure)
      await runStarts(measured.db, tables, 20, measure)
      await readLists(measured.db, tables, seen, measure)
      await sweep(measured.db, measure)
    }
  }
}

async function measureRetention(small: Filled, large: Filled): Promise<void> {
  for (let batch = 0; batch < RETENTION_BATCHES; batch += 1) {
    for (const { measured, tables } of [small, large]) {
      await retire(measured.db, tables, { olderThanDays: RETENTION_DAYS, batchSize: SMALL_BATCH }, measured.measure)
    }
  }
  for (let batch = 0; batch < RETENTION_BATCHES; batch += 1) {
    const options = { olderThanDays: RETENTION_DAYS, batchSize: 1_000 }
    await retire(large.measured.db, large.tables, options, large.measured.measure)
  }
}

/** The overview reads up to 200 rows of a kind: more than a small table has. */
const GROWING = new Set(['application: overview', 'application: usage of 7 days'])

function toFigures(
  rows: number,
  small: ReadonlyMap<string, StatementCost>,
  large: ReadonlyMap<string, StatementCost>,
): Figure[] {
  return [...large].flatMap(([name, cost]): Figure[] => {
    const before = small.get(name)
    const other = before ? `at ${SMALL_ROWS.toLocaleString('en')}` : 'no other'
    const target = before && !GROWING.has(name) ? atMost(MAX_RATIO) : undefined
    const title = `${name}, ${rows.toLocaleString('en')} rows`
    return [
      compare(title, cost.ms, 'ms', [other, before?.ms ?? cost.ms]),
      compare(title, cost.pages, 'pages', [other, before?.pages ?? cost.pages], target),
      compare(title, cost.walBytes, 'bytes of log', [other, before?.walBytes ?? cost.walBytes]),
    ]
  })
}
