import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { makeRunFolder, removeDeadRunFolders } from '@workflow-service/dev-servers'
import { runProgram } from '@workflow-service/testkit'
import { makeServerFolder, restoreBaseBackup, saveLastWal, takeBaseBackup } from '../shared/base-backup.ts'
import { type Callers, checkCallers, startCallers, untilAllEnded } from '../shared/callers.ts'
import { FIELD } from '../shared/check-record.ts'
import { createCustomer, type Customer } from '../shared/customers.ts'
import { defineTrial, type Log, type TrialOptions } from '../shared/define-trial.ts'
import { secondsSince } from '../shared/figures.ts'
import { type ProcessName, startSystem, type System } from '../shared/system.ts'

export const trial = defineTrial({
  summary:
    'restores backups that were taken under load, and counts starts that were lost and payloads that were sent twice',
  options: {},
  async run({ log }) {
    const violations: string[] = []
    for (const until of ['end of the backup', 'end of the WAL'] as const) {
      log(`Restore to the ${until}`)
      violations.push(...(await runBackupTrial({ until, ...PRODUCTION, log })))
    }
    return violations
  },
})

export interface BackupOptions extends TrialOptions {
  /** How far the restored database goes. */
  readonly until: 'end of the backup' | 'end of the WAL'
  /**
   * How long the load lasts before the backup, between backup and kill (which is not in the backup), and on the
   * restored database.
   */
  readonly loadMs: readonly [before: number, afterwards: number, restored: number]
  readonly customers: readonly PlannedCustomer[]
  /** Those that are started, and killed: runner and dispatcher, or both in one. */
  readonly processes: readonly ProcessName[]
}

interface PlannedCustomer {
  readonly name: string
  /** The last part of its second source's path, by which the receiver answers. */
  readonly second: string
  readonly callers: number
  readonly pauseMs: readonly [number, number]
}

const QUICK = { name: 'Quick', second: 'audit', callers: 6, pauseMs: [100, 500] } as const
// A run takes 2 s and a caller pauses for 1 s: some starts wait, some payloads are in flight at any moment.
const SLOW = { name: 'Slow', second: 'slow', callers: 8, pauseMs: [500, 1_500] } as const
const PRODUCTION = {
  loadMs: [10_000, 8_000, 5_000],
  customers: [QUICK, SLOW],
  processes: ['dispatcher', 'gateway', 'runner'],
} as const
/** One customer, and seconds of load. */
export const SMALL = { loadMs: [1_000, 500, 500], customers: [QUICK], processes: ['compact', 'gateway'] } as const

/** The load of a customer before the kill. */
interface Lives {
  readonly plan: PlannedCustomer
  readonly before: Callers
}

/**
 * Takes a base backup under load, goes on for a while, kills everything, restores the database, starts the services on
 * it under load again, and compares the records of callers, endpoint and database over both lives. Resolves to the
 * broken promises.
 */
export async function runBackupTrial(options: BackupOptions): Promise<string[]> {
  const { until, loadMs, rabbitMq, log } = options
  await removeDeadRunFolders()
  await using stack = new AsyncDisposableStack()
  const folder = stack.adopt(await makeRunFolder(), (path) => rm(path, { recursive: true, force: true }))
  const archive = join(folder, 'archive')
  const postgresSettings = {
    // A restored server accepts connections only when its recovery has ended.
    hot_standby: 'off',
    archive_mode: 'on',
    archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f`,
    restore_command: `cp ${archive}/%f %p`,
  }
  const system = stack.use(await startSystem({ postgresSettings, rabbitMq }))
  const { postgres, services } = system
  await makeServerFolder(archive, postgres.dataDir)
  for (const name of options.processes) await system.start(name)
  const lives: Lives[] = []
  for (const plan of options.customers) {
    const customer = await createCustomer(system, [`/${plan.name}/orders`, `/${plan.name}/${plan.second}`])
    lives.push({ plan, before: startLoad(system, customer, plan, 'before') })
  }
  log(`load for ${loadMs[0] / 1_000} s, then a base backup`)
  await pause(loadMs[0])
  const startedAt = performance.now()
  const backup = await takeBaseBackup(postgres.adminUrl, postgres.dataDir, join(folder, 'backup'))
  log(`base backup: ${secondsSince(startedAt)} s; load for ${loadMs[1] / 1_000} s, then everything is killed`)
  await pause(loadMs[1])
  await postgres.kill()
  for (const service of services) await service.kill()
  await Promise.all(lives.map(({ before }) => before.stop()))

  const restoredAt = performance.now()
  if (until === 'end of the WAL') await saveLastWal(postgres.dataDir, archive)
  await restoreBaseBackup(backup, postgres.dataDir, until)
  await postgres.restart()
  log(`restored to the ${until}: ${secondsSince(restoredAt)} s; at that moment: ${await describeUnfinished(system)}`)
  if (until === 'end of the backup') log((await afterRestore(postgres.url)).trim())
  for (const service of services) await service.restart()
  const after = lives.map(({ plan, before }) => startLoad(system, before.customer, plan, 'after'))
  await pause(loadMs[2])
  for (const callers of after) await callers.stop()
  await untilAllEnded(system)
  const isPromised = (answeredAt: number): boolean => until === 'end of the WAL' || answeredAt < backup.endedAt
  const violations: string[] = []
  for (const [index, life] of lives.entries())
    violations.push(...(await compare(system, life, after[index]!, isPromised, log)))
  log(`${violations.length} broken promises`)
  return violations
}

function startLoad(
  system: System,
  customer: Customer,
  { name, callers, pauseMs }: PlannedCustomer,
  life: string,
): Callers {
  const options = { callers, pauseMs, startsPerSession: 5, seed: name.length }
  return startCallers(system, customer, { ...options, name: `${name} ${life} ` })
}

async function afterRestore(databaseUrl: string): Promise<string> {
  const main = fileURLToPath(new URL('../../../packages/cli/src/main.ts', import.meta.url))
  return await runProgram(process.execPath, [main, 'after-restore', '--yes'], { env: { DATABASE_URL: databaseUrl } })
}

async function describeUnfinished({ pool }: System): Promise<string> {
  const { rows } = await pool.query<{ text: string }>(
    `SELECT format('%s starts queued, %s running, %s payloads in flight',
       (SELECT count(*) FROM starts WHERE status = 'queued'), (SELECT count(*) FROM starts WHERE status = 'running'),
       (SELECT count(*) FROM deliveries WHERE outcome = 'in_flight')) AS text`,
  )
  return rows[0]!.text
}

const isInterruption = (error: string): boolean => error.startsWith('interrupted_by_restore')

/** @param isPromised Whether a start that was answered 202 at this time must be in the restored database. */
async function compare(
  system: System,
  { plan, before }: Lives,
  after: Callers,
  isPromised: (answeredAt: number) => boolean,
  log: Log,
): Promise<readonly string[]> {
  const { pool, receiver } = system
  const promised = before.requested.map((start) =>
    start.accepted && isPromised(start.accepted.answeredAt) ? start : { ...start, accepted: undefined },
  )
  const findings = await checkCallers(system, [{ ...before, requested: promised }, after], isInterruption)
  const { rows } = await pool.query<{ text: string; isInterrupted: boolean }>(
    `SELECT substr(context, ${FIELD.length + 1}) AS text, coalesce(error LIKE 'interrupted_by_restore%', false) AS "isInterrupted"
     FROM starts WHERE organization_id = $1`,
    [before.customer.organizationId],
  )
  const known = new Set(rows.map(({ text }) => text))
  const arrived = new Set(receiver.arrivals.map(({ text }) => text))
  const interrupted = rows.filter(({ isInterrupted }) => isInterrupted)
  const accepted = before.requested.filter((start) => start.accepted !== undefined)
  log(
    `${plan.name}: ${accepted.length} answered 202 before the kill, of them ${promised.filter((start) => start.accepted).length} ` +
      `promised, ${accepted.filter(({ text }) => !known.has(text)).length} lost; ${interrupted.length} interrupted by the restore, ` +
      `of them ${interrupted.filter(({ text }) => arrived.has(text)).length} had sent something; ${findings.outcomeUnknown} with an ` +
      `unknown outcome; ${after.requested.filter((start) => start.accepted).length} answered 202 after the restore; ` +
      `${findings.payloads} payloads`,
  )
  return findings.violations
}
