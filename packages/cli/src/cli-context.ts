import { createDatabase, type Database } from '@workflow-service/database'
import { type CliConfig, readCliConfig } from './config.ts'
import { createDispatcherClient, type DispatcherClient } from './dispatcher-client.ts'
import { createTerminal, type Terminal } from './terminal.ts'

/** All that a command may touch. What it does not ask for needs no settings and is not opened. */
export interface CliContext {
  readonly terminal: Terminal
  readonly config: CliConfig
  database(): Database
  dispatcher(): DispatcherClient
  /** Aborts on Ctrl-C; without it Ctrl-C ends the process at once. */
  interrupted(): AbortSignal
  dispose(): Promise<void>
}

/** What a caller in the same process, or a test, may put in place. */
export interface CliOverrides {
  terminal?: Terminal
  env?: NodeJS.ProcessEnv
  interrupted?: AbortSignal
}

/** A manifest of thousands of workflows takes longer than any statement of a service may. */
const STATEMENT_TIMEOUT_MS = 120_000

export function createCliContext(overrides: CliOverrides = {}): CliContext {
  const config = readCliConfig(overrides.env)
  let database: Database | undefined
  return {
    config,
    terminal: overrides.terminal ?? createTerminal(),
    database: () =>
      (database ??= createDatabase({
        url: config.databaseUrl(),
        applicationName: 'wf',
        maxConnections: 4,
        statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      })),
    dispatcher: () => createDispatcherClient(config.dispatcher()),
    interrupted: () => {
      if (overrides.interrupted) return overrides.interrupted
      const controller = new AbortController()
      process.once('SIGINT', () => controller.abort())
      return controller.signal
    },
    dispose: async () => {
      await database?.close()
    },
  }
}
