import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Environment, type Service, startEnvironment } from '@workflow-service/bench/environment'
import { createDatabase, type Database } from '@workflow-service/database'
import { makeRunFolder, removeDeadRunFolders } from '@workflow-service/dev-servers'
import { createForwardingCustomer, type ForwardingCustomer } from '@workflow-service/soak/forwarding-customer'
import { type SoakEndpoint, startSoakEndpoint } from '@workflow-service/soak/soak-endpoint'
import { startProcess, waitUntil } from '@workflow-service/testkit'
import { checkRecord } from '../../../services/runner/test/chaos/check-record.ts'
import { FIELD, type Load, startLoad } from '../../../services/runner/test/chaos/load.ts'
import { createRandom } from '../../../services/runner/test/chaos/random.ts'
import { makeServerFolder, restoreBaseBackup, saveLastWal, takeBaseBackup } from './base-backup.ts'

export interface BackupTrialOptions {
  /** How far the restored database goes. */
  readonly until: 'end of the backup' | 'end of the WAL'
  /** False shows what `wf after-restore` prevents. Only the restore to the end of the backup needs it. */
  readonly runsAfterRestore: boolean
  readonly log: (line: string) => void
}

/** What a trial found. */
export interface BackupTrialReport {
  readonly violations: readonly string[]
}

const LOAD_BEFORE_MS = 10_000
/** What happens in this time is not in the backup. */
const LOAD_AFTER_MS = 8_000
const LOAD_ON_RESTORED_MS = 5_000
const DRAIN_TIMEOUT_MS = 240_000
const CUSTOMERS = [
  { name: 'Quick', second: 'audit', callers: 6, pauseMs: [100, 500] },
  // A run takes 2 s and a caller pauses for 1 s: some starts wait, some payloads are in flight at any moment.
  { name: 'Slow', second: 'slow', callers: 8, pauseMs: [500, 1_500] },
] as const

/**
 * Takes a base backup under load, goes on for a while, kills everything, restores the database, starts the services on it under
 * load again, and compares the records of callers, endpoint and database over both lives.
 */
export async function runBackupTrial(options: BackupTrialOptions): Promise<BackupTrialReport> {
  const { until, runsAfterRestore, log } = options
  await removeDeadRunFolders()
  const folder = await makeRunFolder()
  const archive = join(folder, 'archive')
  const environment = await startEnvironment({
    postgresSettings: {
      // A restored server accepts connections only when its recovery has ended.
      hot_standby: 'off',
      archive_mode: 'on',
      archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f`,
      restore_command: `cp ${archive}/%f %p`,
    },
  })
  const endpoint = await startSoakEndpoint()
  const { postgres } = environment
  const db = createDatabase({ url: postgres.url, applicationName: 'backup-trial', maxConnections: 3 })
  try {
    environment.client.on('error', () => {})
    await makeServerFolder(archive, postgres.dataDir)
    const dispatcher = await environment.startDispatcher()
    const gateway = await environment.startGateway()
    const services = [dispatcher, gateway, await environment.startRunner(dispatcher.url)]
    const customers = await createCustomers(environment, dispatcher, endpoint)

    log(`load for ${LOAD_BEFORE_MS / 1_000} s, then a base backup`)
    const before = startLoads(customers, gateway, db, 'before')
    await pause(LOAD_BEFORE_MS)
    const startedAt = performance.now()
    const backup = await takeBaseBackup(postgres.adminUrl, postgres.dataDir, join(folder, 'backup'))
    log(
      `base backup under load: ${seconds(startedAt)} s; load goes on for ${LOAD_AFTER_MS / 1_000} s, then everything is killed`,
    )
    await pause(LOAD_AFTER_MS)
    await postgres.kill()
    for (const { process } of services) {
      process.kill('SIGKILL')
      await process.exited
    }
    await Promise.all(before.map((load) => load.stop()))

    const restoreAt = performance.now()
    if (until === 'end of the WAL') await saveLastWal(postgres.dataDir, archive)
    await restoreBaseBackup(backup, postgres.dataDir, until)
    await postgres.restart()
    log(`restored to the ${until}: ${seconds(restoreAt)} s`)
    const inFlight = await describeUnfinished(db)
    log(`at that moment: ${inFlight}`)
    if (until === 'end of the backup' && runsAfterRestore) log((await afterRestore(postgres.url)).trim())
    for (const service of services) await service.restart()
    const after = startLoads(customers, gateway, db, 'after')
    await pause(LOAD_ON_RESTORED_MS)
    await Promise.all(after.map((load) => load.stop()))
    await waitUntil(async () => (await countUnfinished(db)) === 0, {
      timeoutMs: DRAIN_TIMEOUT_MS,
      intervalMs: 500,
      message: () => 'all runs to end',
    })
    const isPromised = (answeredAt: number): boolean => until === 'end of the WAL' || answeredAt < backup.endedAt
    return { violations: await compare({ customers, before, after, endpoint, db, isPromised, log }) }
  } finally {
    endpoint.close()
    await db.close()
    await environment.close()
    await rm(folder, { recursive: true, force: true })
  }
}

async function createCustomers(
  environment: Environment,
  dispatcher: Service,
  { url: endpointUrl }: SoakEndpoint,
): Promise<ForwardingCustomer[]> {
  const customers: ForwardingCustomer[] = []
  for (const { name, second } of CUSTOMERS) {
    const paths = [`/${name}/orders`, `/${name}/${second}`] as const
    customers.push(await createForwardingCustomer(environment, dispatcher, { name, endpointUrl, paths }))
  }
  return customers
}

function startLoads(customers: readonly ForwardingCustomer[], gateway: Service, db: Database, life: string): Load[] {
  return CUSTOMERS.map(({ name, callers, pauseMs }, index) =>
    startLoad({
      gatewayUrls: [gateway.url],
      workflowId: customers[index]?.workflowId ?? '',
      apiKey: customers[index]?.apiKey ?? '',
      name: `${name} ${life} `,
      callers,
      pauseMs,
      startsPerSession: 5,
      random: createRandom(index + 1),
      countUnfinished: async () => await countUnfinished(db),
    }),
  )
}

async function afterRestore(databaseUrl: string): Promise<string> {
  const main = fileURLToPath(new URL('../../../packages/cli/src/main.ts', import.meta.url))
  const process = await startProcess({ args: [main, 'after-restore', '--yes'], env: { DATABASE_URL: databaseUrl } })
  const { code } = await process.exited
  if (code !== 0) throw new Error(`wf after-restore failed: ${process.stderr}`)
  return process.stdout
}

async function countUnfinished(db: Database): Promise<number> {
  const { rows } = await db.pool.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM sessions WHERE last_finished_number < last_start_number',
  )
  return rows[0]?.count ?? 0
}

async function describeUnfinished(db: Database): Promise<string> {
  const { rows } = await db.pool.query<{ queued: number; running: number; inFlight: number }>(
    `SELECT (SELECT count(*)::int FROM starts WHERE status = 'queued') AS queued,
       (SELECT count(*)::int FROM starts WHERE status = 'running') AS running,
       (SELECT count(*)::int FROM deliveries WHERE outcome = 'in_flight') AS "inFlight"`,
  )
  const [row] = rows
  return `${row?.queued} starts queued, ${row?.running} running, ${row?.inFlight} payloads in flight`
}

async function compare(options: {
  customers: readonly ForwardingCustomer[]
  before: readonly Load[]
  after: readonly Load[]
  endpoint: SoakEndpoint
  db: Database
  /** Whether a start that was answered 202 at this time must be in the restored database. */
  isPromised: (answeredAt: number) => boolean
  log: (line: string) => void
}): Promise<string[]> {
  const { customers, before, after, endpoint, db, isPromised, log } = options
  const violations: string[] = []
  for (const [index, { name, organizationId, paths }] of customers.entries()) {
    const requestedBefore = before[index]?.requested ?? []
    const requestedAfter = after[index]?.requested ?? []
    const promised = requestedBefore.map((start) =>
      start.accepted && isPromised(start.accepted.answeredAt) ? start : { ...start, accepted: undefined },
    )
    const arrivals = endpoint.arrivals.filter(({ path }) => paths.includes(path))
    const findings = await checkRecord(db, {
      organizationId,
      requested: [...promised, ...requestedAfter],
      arrivals,
      paths,
      mayFailWith: (error) => error.startsWith('interrupted_by_restore'),
    })
    const { rows } = await db.pool.query<{ context: string; isInterrupted: boolean }>(
      `SELECT substr(context, ${FIELD.length + 1}) AS context, coalesce(error LIKE 'interrupted_by_restore%', false) AS "isInterrupted"
       FROM starts WHERE organization_id = $1`,
      [organizationId],
    )
    const known = new Set(rows.map(({ context }) => context))
    const arrived = new Set(arrivals.map(({ text }) => text))
    const interrupted = rows.filter(({ isInterrupted }) => isInterrupted)
    const accepted = requestedBefore.filter((start) => start.accepted !== undefined)
    log(
      `${name}: ${accepted.length} answered 202 before the kill, of them ${promised.filter((start) => start.accepted).length} promised, ` +
        `${accepted.filter(({ text }) => !known.has(text)).length} lost; ${interrupted.length} interrupted by the restore, of them ` +
        `${interrupted.filter(({ context }) => arrived.has(context)).length} had sent something; ${findings.outcomeUnknown} with an ` +
        `unknown outcome; ${requestedAfter.filter((start) => start.accepted).length} answered 202 after the restore; ` +
        `${findings.payloads} payloads`,
    )
    const wrongAnswers = [before[index], after[index]].flatMap((load) => load?.wrongAnswers ?? [])
    violations.push(...wrongAnswers.map((answer) => `wrong answer: ${answer}`), ...findings.violations)
  }
  return violations
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1_000).toFixed(1)
}
