import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { startEmbeddedPostgres } from '@workflow-service/database/embedded-postgres'
import { makeRunFolder } from './run-folder.ts'

/** A PostgreSQL of one's own, to be killed and paused. Its address stays the same over restarts. */
export interface PrivatePostgres {
  /** The application's database, as its owner, no superuser. */
  url: string
  /** The database `postgres` as superuser. */
  adminUrl: string
  port: number
  readonly pid: number
  /** Signals the postmaster and, unless the signal is STOP or CONT, waits until it is gone. */
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
  const start = (port?: number) => startEmbeddedPostgres({ dataDir: join(folder, 'data'), port, settings })
  let server = await start()
  const { url, adminUrl, port } = server
  return {
    url,
    adminUrl,
    port,
    get pid() {
      return server.pid
    },
    async kill(signal = 'SIGKILL') {
      server.kill(signal)
      if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await server.exited
    },
    async restart() {
      await server.stop()
      server = await start(port)
    },
    pause: () => void server.kill('SIGSTOP'),
    resume: () => void server.kill('SIGCONT'),
    async stop() {
      await server.stop('immediate')
      await rm(folder, { recursive: true, force: true })
    },
  }
}
