import { execFile } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startEmbeddedPostgres } from '@workflow-service/database/embedded-postgres'
import { freePort } from './free-port.ts'
import { makeRunFolder } from './run-folder.ts'

/** A PostgreSQL of one's own, to be killed and paused. Its address stays the same over restarts. */
export interface PrivatePostgres {
  /** The application's database, as its owner, no superuser. */
  url: string
  /** The database `postgres` as superuser. */
  adminUrl: string
  port: number
  readonly pid: number
  /**
   * SIGKILL (default) ends every process of the server at once, as a crash of the machine would. Any other signal goes
   * to the postmaster; unless it is STOP or CONT, this waits until it is gone.
   */
  kill: (signal?: NodeJS.Signals) => Promise<void>
  /** Stops it if it runs, starts it again on the same data and port. */
  restart: () => Promise<void>
  /** SIGSTOP to the postmaster: no new connection is answered, those that exist go on. */
  pause: () => void
  resume: () => void
  /** Ends it for good and removes its data. */
  stop: () => Promise<void>
}

/**
 * fsync is off: what was committed survives a kill of PostgreSQL, since the operating system keeps the written pages;
 * only a crash of the machine would lose it.
 */
export const testSettings = {
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: 300,
  shared_buffers: '64MB',
  max_wal_size: '256MB',
}

/** Starts an empty PostgreSQL for one test file; `migrate` its `url` yourself. */
export async function startPostgres(
  options: { settings?: Record<string, string | number> } = {},
): Promise<PrivatePostgres> {
  const folder = await makeRunFolder()
  const settings = { ...testSettings, ...options.settings }
  const port = await freePort()
  const start = () => startEmbeddedPostgres({ dataDir: join(folder, 'data'), port, settings })
  let server = await start()
  const { url, adminUrl } = server
  return {
    url,
    adminUrl,
    port,
    get pid() {
      return server.pid
    },
    async kill(signal = 'SIGKILL') {
      const processes = signal === 'SIGKILL' ? await childrenOf(server.pid) : []
      server.kill(signal)
      for (const pid of processes) killIfAlive(pid)
      if (signal === 'SIGSTOP' || signal === 'SIGCONT') return
      // A paused server takes no other signal.
      server.kill('SIGCONT')
      await server.exited
    },
    async restart() {
      await server.stop()
      server = await start()
    },
    pause: () => void server.kill('SIGSTOP'),
    resume: () => void server.kill('SIGCONT'),
    async stop() {
      await server.stop('immediate')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function childrenOf(parent: number): Promise<number[]> {
  const listed = await readFile(`/proc/${parent}/task/${parent}/children`, 'utf8').catch(() => undefined)
  const text = listed ?? (await promisify(execFile)('pgrep', ['-P', String(parent)])).stdout
  return text.split(/\s+/).filter(Boolean).map(Number)
}

function killIfAlive(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It ended by itself.
  }
}
