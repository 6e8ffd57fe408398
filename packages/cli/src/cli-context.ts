import { buffer } from 'node:stream/consumers'
import type { Database, OrganizationName } from '@workflow-service/database'
import type { InternalClient } from '@workflow-service/service-kit/internal-client'
import type { WorkflowClient } from '../../client/src/index.ts'
import { CliError } from './cli-error.ts'
import type { CliConfig } from './operator/config.ts'
import { decodeText } from './read-file.ts'
import { createTerminal, guardTerminal, type Terminal } from './terminal.ts'
import type { WorkflowReader } from './workflows.ts'

/** What every command works with. */
export type CliContext = ReturnType<typeof createCliContext>

/**
 * What operators' commands work with. A database or dispatcher that a command does not use needs no settings and is not
 * opened.
 */
export interface OperatorContext extends CliContext {
  readonly config: CliConfig
  readonly db: Database
  dispatcher(): InternalClient
}

/** What operators' commands work with that are about one organization. */
export interface OrganizationContext extends OperatorContext {
  readonly organization: OrganizationName
  readonly workflows: WorkflowReader
}

/** What commands with an API key work with: only the public API. */
export interface KeyContext extends CliContext {
  readonly client: WorkflowClient
  readonly workflows: WorkflowReader
  readonly url: string
}

/** Converts errors that it knows, and closes what it opened. */
export interface Opened<Context extends CliContext> {
  readonly context: Context
  readonly explain: (error: unknown) => CliError | undefined
  readonly close?: () => Promise<void>
}

/** Replacements for the process's own terminal, environment and Ctrl-C. */
export interface CliOverrides {
  terminal?: Terminal
  env?: NodeJS.ProcessEnv
  interrupted?: AbortSignal | undefined
  /** What standard input has. */
  input?: string | undefined
}

export function createCliContext(overrides: CliOverrides = {}) {
  let interrupt: AbortSignal | undefined
  let timeout: AbortSignal | undefined
  const opened: Opened<CliContext>[] = []
  const open = <Context extends CliContext>(each: Opened<Context>): Context => {
    opened.push(each)
    return each.context
  }
  const ctx = {
    terminal: overrides.terminal ? guardTerminal(overrides.terminal) : createTerminal(),
    env: overrides.env ?? process.env,
    readInput: async () => overrides.input ?? (await decodeText('Standard input', buffer(process.stdin))),
    /** Returns a signal that aborts on Ctrl-C and after the time. Before the first call, Ctrl-C ends the process. */
    interrupted: (timeoutMs?: number) => {
      interrupt ??= overrides.interrupted ?? interruptOfProcess()
      timeout = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
      return timeout ? AbortSignal.any([interrupt, timeout]) : interrupt
    },
    /** What aborted the signal of `interrupted`. */
    endedBy: () => (interrupt?.aborted ? 'interrupt' : timeout?.aborted ? 'timeout' : undefined),
    /** Opens what operators' commands work with. */
    operator: async () => open((await import('./operator/operator-context.ts')).openOperatorContext(ctx)),
    /** Opens what commands with an API key work with. @throws CliError if there is no key. */
    key: async () => open((await import('./key/key-context.ts')).openKeyContext(ctx)),
    /** Converts an error into one with advice; undefined if it is an unexpected error. */
    explain: (error: unknown) => {
      if (error instanceof CliError) return error
      for (const { explain } of opened) {
        const explained = explain(error)
        if (explained) return explained
      }
      return undefined
    },
    dispose: async () => {
      for (const { close } of opened) await close?.()
    },
  }
  return ctx
}

function interruptOfProcess(): AbortSignal {
  const controller = new AbortController()
  process.once('SIGINT', () => controller.abort())
  return controller.signal
}
