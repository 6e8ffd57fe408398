import { createDatabase, type Database } from '@workflow-service/database'
import { type CliConfig, readCliConfig } from './config.ts'
import { createDispatcherClient, type DispatcherClient } from './dispatcher-client.ts'
import { createTerminal, type Terminal } from './terminal.ts'

/** What commands work with. A database or dispatcher that a command does not use needs no settings and is not opened. */
export interface CliContext {
  readonly terminal: Terminal
  readonly config: CliConfig
  database(): Database
  dispatcher(): DispatcherClient
  /** Returns a signal that aborts on Ctrl-C. Until a command calls this, Ctrl-C ends the process. */
  interrupted(): AbortSignal
  dispose(): Promise<void>
}

/** Replacements for the process's own terminal, environment and Ctrl-C. */
export interface CliOverrides {
  terminal?: Terminal
  env?: NodeJS.ProcessEnv
  interrupted?: AbortSignal
}

/** Longer than in the services, because a manifest may have thousands of workflows. */
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
