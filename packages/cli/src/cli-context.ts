import { text as readAll } from 'node:stream/consumers'
import type { EventTopic } from '@workflow-service/contract'
import { createDatabase, createChangeNotifier, type Database, type ChangeNotifier } from '@workflow-service/database'
import { createInternalClient, type InternalClient } from '@workflow-service/service-kit/internal-client'
import { type CliConfig, readCliConfig } from './config.ts'
import { createTerminal, guardTerminal, type Terminal } from './terminal.ts'

/**
 * What commands work with. A database or dispatcher that a command does not use needs no settings and is not opened.
 */
export interface CliContext {
  readonly terminal: Terminal
  readonly config: CliConfig
  database(): Database
  dispatcher(): InternalClient
  /** Hints at a change for the pages of the application that are open. */
  notify(organizationId: string, ...topics: EventTopic[]): void
  /** Reads standard input to its end. */
  readInput(): Promise<string>
  /** Returns a signal that aborts on Ctrl-C. Until a command calls this, Ctrl-C ends the process. */
  interrupted(): AbortSignal
  dispose(): Promise<void>
}

/** Replacements for the process's own terminal, environment and Ctrl-C. */
export interface CliOverrides {
  terminal?: Terminal
  env?: NodeJS.ProcessEnv
  interrupted?: AbortSignal
  /** What standard input has. */
  input?: string
}

/** Longer than in the services, because a manifest may have thousands of workflows. */
const STATEMENT_TIMEOUT_MS = 120_000

export function createCliContext(overrides: CliOverrides = {}): CliContext {
  const config = readCliConfig(overrides.env)
  let database: Database | undefined
  let notices: ChangeNotifier | undefined
  const openDatabase = (): Database =>
    (database ??= createDatabase({
      url: config.databaseUrl(),
      applicationName: 'wf',
      maxConnections: 4,
      statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    }))
  return {
    config,
    terminal: overrides.terminal ? guardTerminal(overrides.terminal) : createTerminal(),
    database: openDatabase,
    dispatcher: () => createInternalClient(config.dispatcher()),
    notify: (organizationId, ...topics) => {
      // A page that misses a notice reads again by itself after a while.
      notices ??= createChangeNotifier({ db: openDatabase(), onError: () => {} })
      notices.add(organizationId, ...topics)
    },
    readInput: async () => overrides.input ?? (await readAll(process.stdin)),
    interrupted: () => {
      if (overrides.interrupted) return overrides.interrupted
      const controller = new AbortController()
      process.once('SIGINT', () => controller.abort())
      return controller.signal
    },
    dispose: async () => {
      await notices?.close()
      await database?.close()
    },
  }
}
