import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chown, mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { EmbeddedPostgresError, toStartError } from './embedded-postgres-error.ts'
import { isAlive } from './is-alive.ts'
import type { PostgresBinaries } from './postgres-binaries.ts'
import { dataDirArgument, run, type RunResult, type ServerUser } from './postgres-process.ts'

/** Server settings by their postgresql.conf names. */
export type PostgresSettings = Record<string, string | number | boolean>

/** A data folder with the programs that use it and the user that they run as. */
export interface PostgresInstance extends PostgresBinaries, ServerUser {
  dataDir: string
}

/** The name of the application's role and of its database. */
export const APPLICATION_NAME = 'workflow_service'
/** Contains the password. Written last: a data folder with this file is complete. */
const SETTINGS_FILE = 'workflow-service.json'

/** Processes that initdb has started may still write when it has ended: removing is tried again. */
const RM_OPTIONS = { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }

/**
 * Creates the data folder if it is missing. initdb works in a draft folder beside it, which is renamed when complete: a
 * data folder is either complete or absent. Removes the drafts of processes that no longer exist. Resolves to the
 * password of both roles.
 */
export async function prepareDataFolder(instance: PostgresInstance, settings: PostgresSettings): Promise<string> {
  const { dataDir } = instance
  const parent = dirname(dataDir)
  await explain(mkdir(parent, { recursive: true }), `The folder ${parent} cannot be made`)
  await removeDeadDrafts(parent, `${basename(dataDir)}.new-`)
  if (isComplete(dataDir)) await checkVersion(instance)
  else await createDataFolder(instance, settings)
  const file = await readFile(join(dataDir, SETTINGS_FILE), 'utf8')
  return (JSON.parse(file) as { password: string }).password
}

/** On Windows a folder cannot be renamed while another program, such as a virus scanner, has one of its files open. */
async function renameFolder(from: string, to: string): Promise<void> {
  for (let retries = process.platform === 'win32' ? RM_OPTIONS.maxRetries : 0; ; retries--) {
    try {
      await rename(from, to)
      return
    } catch (error) {
      if (retries === 0 || !['EPERM', 'EBUSY', 'EACCES'].includes((error as NodeJS.ErrnoException).code ?? ''))
        throw error
      await sleep(RM_OPTIONS.retryDelay)
    }
  }
}

function isComplete(dataDir: string): boolean {
  return existsSync(join(dataDir, SETTINGS_FILE))
}

async function checkVersion({ dataDir, major }: PostgresInstance): Promise<void> {
  const version = (await readFile(join(dataDir, 'PG_VERSION'), 'utf8')).trim()
  if (version === major) return
  throw new EmbeddedPostgresError(
    `${dataDir} was made by PostgreSQL ${version} and this is PostgreSQL ${major}: dump it with the old version, ` +
      'or remove the folder to start with an empty database',
  )
}

async function createDataFolder(instance: PostgresInstance, settings: PostgresSettings): Promise<void> {
  const { dataDir } = instance
  if (existsSync(dataDir) && (await readdir(dataDir)).length > 0) {
    throw new EmbeddedPostgresError(`${dataDir} contains files of something else: move them or name another folder`)
  }
  const draft = `${dataDir}.new-${process.pid}-${randomBytes(4).toString('hex')}`
  try {
    await explain(mkdir(draft, { mode: 0o700 }), `The folder ${draft} cannot be made`)
    await initialize({ ...instance, dataDir: draft }, settings)
    // Removes an empty folder only: another process may have put its own there meanwhile.
    await rmdir(dataDir).catch(() => {})
    await renameFolder(draft, dataDir)
  } catch (error) {
    await rm(draft, RM_OPTIONS)
    if (!isComplete(dataDir)) throw error
  }
}

async function initialize(instance: PostgresInstance, settings: PostgresSettings): Promise<void> {
  const { dataDir, postgres, uid, gid } = instance
  const isDurable = settings.fsync !== 'off' && settings.fsync !== false
  if (uid !== undefined && gid !== undefined) await chown(dataDir, uid, gid)
  const cluster = await runInitdb(instance, isDurable)
  if (cluster.hasFailed) throw toStartError(cluster.output, dataDir)

  // Every user of this machine can connect to a loopback port, and a superuser of the database can run commands as the
  // server's user: hence a password instead of initdb's `trust`.
  const password = randomBytes(24).toString('base64url')
  await writeFile(join(dataDir, 'pg_hba.conf'), 'host all all 127.0.0.1/32 scram-sha-256\n')
  const statements = [
    `ALTER ROLE postgres PASSWORD '${password}'`,
    `CREATE ROLE ${APPLICATION_NAME} LOGIN PASSWORD '${password}'`,
    `CREATE DATABASE ${APPLICATION_NAME} OWNER ${APPLICATION_NAME}`,
  ]
  const flags = isDurable ? [] : ['-c', 'fsync=off']
  const args = ['--single', ...flags, '-D', dataDirArgument(instance), 'postgres']
  const roles = await run(instance, postgres, args, statements.map((statement) => `${statement};\n`).join(''))
  // In single-user mode, PostgreSQL exits with 0 after a failed statement too.
  if (roles.hasFailed || /ERROR|FATAL|PANIC/.test(roles.output)) throw toStartError(roles.output, dataDir)
  await writeFile(join(dataDir, SETTINGS_FILE), `${JSON.stringify({ password })}\n`, { mode: 0o600, flush: isDurable })
}

/**
 * Runs initdb with the built-in locale provider: sorting by code point and Unicode case folding are then the same on
 * every platform. Only LC_CTYPE comes from the C library: pg_trgm asks it which characters are letters, and with "C" it
 * recognizes ASCII only. Platforms name a UTF-8 locale differently, so this tries them in turn.
 */
async function runInitdb(instance: PostgresInstance, isDurable: boolean): Promise<RunResult> {
  let result = { hasFailed: true, output: '' }
  for (const ctype of ['C.UTF-8', 'en_US.UTF-8', 'C']) {
    const args = ['--encoding=UTF8', '--locale=C', `--lc-ctype=${ctype}`, '--locale-provider=builtin']
    args.push('--builtin-locale=C.UTF-8', '--auth=trust', '--username=postgres', '--no-instructions')
    if (!isDurable) args.push('--no-sync')
    result = await run(instance, instance.initdb, [...args, '-D', dataDirArgument(instance)])
    if (!result.output.includes('invalid locale name')) break
  }
  return result
}

async function removeDeadDrafts(parent: string, prefix: string): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(prefix)) continue
    const pid = Number.parseInt(name.slice(prefix.length), 10)
    if (!isAlive(pid)) await rm(join(parent, name), RM_OPTIONS)
  }
}

/**
 * Removes the lock file of a server that has ended, if another program has its pid by now, as after a reboot or the
 * restart of a container: PostgreSQL would take that program for the server. Rejects when the server runs.
 */
export async function removeStaleLock(dataDir: string): Promise<void> {
  const lockFile = join(dataDir, 'postmaster.pid')
  const pid = Number.parseInt(await readFile(lockFile, 'utf8').catch(() => ''), 10)
  if (!(pid > 0) || !isAlive(pid)) return
  const program = await programOf(pid)
  // An unknown program may be the server: its data is worth more than a start.
  if (program === '' || program.includes('postgres')) {
    throw new EmbeddedPostgresError(
      `${dataDir} is in use by another running instance (PostgreSQL pid ${pid}): stop that one first`,
      { code: 'data_dir_in_use' },
    )
  }
  await rm(lockFile, { force: true })
}

/** The name of the program that a process runs; empty if the system does not say. */
async function programOf(pid: number): Promise<string> {
  if (process.platform === 'win32') {
    return programInTaskList((await run({}, 'tasklist', ['/FI', `PID eq ${pid}`, '/FO', 'CSV', '/NH'])).output, pid)
  }
  const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => undefined)
  return name ?? (await run({}, 'ps', ['-o', 'comm=', '-p', String(pid)])).output.trim()
}

/** The program of a process in the output of `tasklist /FO CSV`: `"postgres.exe","1234","Console","1","20,480 K"`. */
export function programInTaskList(output: string, pid: number): string {
  return new RegExp(`^"([^"]+)","${pid}"`, 'm').exec(output)?.[1] ?? ''
}

async function explain<Result>(work: Promise<Result>, failure: string): Promise<Result> {
  try {
    return await work
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code === 'ENOSPC' ? 'no space left on the disk' : message
    throw new EmbeddedPostgresError(`${failure}: ${reason}`, { cause: error })
  }
}
