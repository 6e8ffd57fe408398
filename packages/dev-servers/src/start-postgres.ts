import { execFile, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { freePort } from './free-port.ts'
import { findBinaries } from './postgres-binaries.ts'
import { prepareDataFolder } from './postgres-data-folder.ts'
import { findServerUser } from './postgres-process.ts'
import { controlServer, type PrivateServer } from './private-server.ts'
import { makeRunFolder } from './run-folder.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './start-embedded-postgres.ts'

/** A PostgreSQL server that one test owns. `url` is the application's database, as its owner, who is no superuser. */
export interface PrivatePostgres extends PrivateServer {
  /** The database `postgres` as superuser. */
  adminUrl: string
  dataDir: string
}

/**
 * `fsync` is off: committed data survives a kill of PostgreSQL, because the operating system keeps the written pages;
 * only a crash of the machine would lose it.
 */
const SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: 300,
  shared_buffers: '64MB',
  max_wal_size: '256MB',
}

/**
 * Starts an empty PostgreSQL on a free port of 127.0.0.1. Migrate its `url` yourself. `kill('SIGKILL')` ends every
 * process of the server at once, as a crash of the machine would; other signals go to the main process (postmaster). A
 * pause stops the postmaster only: it answers no new connection, and the existing ones go on.
 */
export async function startPostgres(
  options: { settings?: Record<string, string | number> } = {},
): Promise<PrivatePostgres> {
  const folder = await makeRunFolder()
  const settings = { ...SETTINGS, ...options.settings }
  const port = await freePort()
  const dataDir = join(folder, 'data')
  await copyEmptyServer(dataDir)
  const start = async () => withChildren(await startEmbeddedPostgres({ dataDir, port, settings }))
  const started = await start()
  const server = controlServer(started, {
    url: started.url,
    start,
    shutdownSignal: 'SIGINT',
    stopSignal: 'SIGQUIT',
    cleanUp: async () => await rm(folder, { recursive: true, force: true }),
  })
  return Object.assign(server, { adminUrl: started.adminUrl, dataDir })
}

/**
 * Copies the data folder of a server that was never started, which the first call on a machine makes: a copy takes a
 * tenth of the processor time of initdb, about 1 s.
 */
async function copyEmptyServer(dataDir: string): Promise<void> {
  if (process.platform === 'win32') return
  const user = await findServerUser()
  const binaries = await findBinaries(user)
  const source = readFileSync(join(import.meta.dirname, 'postgres-data-folder.ts'))
  const name = `postgres-${binaries.version}-${createHash('sha256').update(source).digest('hex').slice(0, 16)}`
  const empty = join(import.meta.dirname, '../../../node_modules/.cache', name)
  await prepareDataFolder({ ...binaries, ...user, dataDir: empty }, SETTINGS)
  // Node's own copy does not keep the owner.
  await promisify(execFile)('cp', ['-a', empty, dataDir])
}

/** SIGKILL reaches the server's child processes too; they would notice the postmaster's end only a moment later. */
function withChildren(server: EmbeddedPostgres): EmbeddedPostgres {
  return {
    ...server,
    kill(signal) {
      const children = signal === 'SIGKILL' ? childrenOf(server.pid) : []
      const isSent = server.kill(signal)
      // Those that have ended already are no error.
      if (children.length > 0) spawnSync('/bin/sh', ['-c', 'kill -s KILL "$@"', 'sh', ...children])
      return isSent
    },
  }
}

/** The ids of a process's children. macOS has no /proc. */
function childrenOf(parent: number): string[] {
  const script = 'cat /proc/$1/task/$1/children || pgrep -P $1'
  const { stdout } = spawnSync('/bin/sh', ['-c', script, 'sh', String(parent)], { encoding: 'utf8' })
  return stdout.split(/\s+/).filter(Boolean)
}
