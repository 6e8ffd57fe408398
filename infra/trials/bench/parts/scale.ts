import type { Pool } from 'pg'
import { percentile } from '../../shared/figures.ts'
import { seedDeliveries, seedJournals, seedRuns } from '../../shared/seed.ts'
import { openUnchecked, readNumber } from '../../shared/system.ts'
import {
  atLeast,
  atMost,
  type BenchOptions,
  compare,
  type Figure,
  measureAlternately,
  pieceSeconds,
} from '../figure.ts'
import { runsPerSecond, type ServicePath, startServicePath, startsOf, warmUp } from '../service-path.ts'

const SMALL_ROWS = 20_000
/** The time over which the rows are spread, until now. The services keep all of them by default. */
const DAYS = 80
const RETENTION_DAYS = String(DAYS / 2)
const RETENTION = {
  DELIVERY_LOG_RETENTION_DAYS: RETENTION_DAYS,
  JOURNAL_RETENTION_DAYS: RETENTION_DAYS,
  RUN_RETENTION_DAYS: RETENTION_DAYS,
  SESSION_RETENTION_DAYS: RETENTION_DAYS,
}
const STARTS_PER_SECOND = 200
/** A delivery, two rows of the journal, the run, and the session. */
const ROWS_PER_START = 5

/** Measures the whole path of a start in tables of `rows` starts and deliveries against that in tables of 20,000. */
export async function measureScale(options: BenchOptions): Promise<Figure[]> {
  const { rows, log } = options
  await using stack = new AsyncDisposableStack()
  const open = async (count: number): Promise<ServicePath> => {
    const path = stack.use(await startServicePath(options))
    log(`scale: inserting ${count.toLocaleString('en')} starts`)
    await fill(path, count)
    await warmUp(path, options)
    return path
  }
  const [small, large] = [await open(SMALL_ROWS), await open(rows)]
  const bytes = await readNumber(large.pool, 'SELECT pg_database_size(current_database())::float8 AS value')
  log(`scale: runs, and ${STARTS_PER_SECOND} starts per second`)
  const seconds = pieceSeconds(options)
  const measured = await measureAlternately(options, {
    smallRuns: () => runsPerSecond(small, seconds),
    largeRuns: () => runsPerSecond(large, seconds),
    smallMs: () => p95OfStarts(small, seconds),
    largeMs: () => p95OfStarts(large, seconds),
  })
  log('scale: the same beside the retention')
  const retention = await large.start('dispatcher', { env: RETENTION })
  const startedAt = performance.now()
  const before = await countDeleted(large.pool)
  const retentionMs = await p95OfStarts(large, options.rounds * options.seconds)
  const deleted = ((await countDeleted(large.pool)) - before) / ((performance.now() - startedAt) / 1_000)
  await retention.kill('SIGTERM')
  const [title, other] = [rows, SMALL_ROWS].map((count) => `${count.toLocaleString('en')} starts`)
  const latency = `start → endpoint at ${STARTS_PER_SECOND} starts/s, p95, ${title}`
  const rowsPerSecond = STARTS_PER_SECOND * ROWS_PER_START
  return [
    compare(`stored per start, ${title}`, bytes / rows, 'bytes', ['a page', 8_192]),
    compare(`runs completed, ${title}`, measured.largeRuns, '/s', [`with ${other}`, measured.smallRuns], atLeast(0.67)),
    compare(latency, measured.largeMs, 'ms', [`with ${other}`, measured.smallMs], atMost(1.5)),
    compare('the same beside the retention', retentionMs, 'ms', ['without it', measured.largeMs]),
    compare('rows that the retention deletes', deleted, '/s', ['rows of the starts', rowsPerSecond], atLeast(1)),
  ]
}

async function fill({ postgres, customer }: ServicePath, rows: number): Promise<void> {
  const pool = openUnchecked(postgres)
  const times = { days: DAYS, spacingMs: (DAYS * 86_400_000) / rows }
  await seedRuns({ pool }, customer, rows, times)
  await seedDeliveries({ pool }, customer, rows, times)
  await seedJournals({ pool })
  await pool.end()
}

async function p95OfStarts({ gateway, customer, receiver }: ServicePath, seconds: number): Promise<number> {
  const calls = await receiver.run({ ...startsOf(customer, gateway.url), everyMs: 1_000 / STARTS_PER_SECOND, seconds })
  return percentile(
    calls.map(({ ms }) => ms),
    0.95,
  )
}

async function countDeleted(pool: Pool): Promise<number> {
  return await readNumber(pool, 'SELECT sum(n_tup_del)::float8 AS value FROM pg_stat_user_tables')
}
