import { createDatabase, type Database } from '@workflow-service/database'
import { createInternalClient } from '@workflow-service/service-kit/internal-client'
import type { CliContext, Opened, OperatorContext } from '../cli-context.ts'
import { readCliConfig } from './config.ts'
import { toOperatorError } from './operator-error.ts'

/** Longer than in the services, because a manifest may have thousands of workflows. */
const STATEMENT_TIMEOUT_MS = 120_000

export function openOperatorContext(ctx: CliContext): Opened<OperatorContext> {
  const config = readCliConfig(ctx.env)
  let database: Database | undefined
  const context: OperatorContext = {
    ...ctx,
    config,
    get db() {
      return (database ??= createDatabase({
        url: config.databaseUrl(),
        applicationName: 'wf',
        maxConnections: 4,
        statementTimeoutMs: STATEMENT_TIMEOUT_MS,
      }))
    },
    dispatcher: () => createInternalClient(config.dispatcher()),
  }
  return {
    context,
    explain: (error) => toOperatorError(error, config),
    close: async () => await database?.close(),
  }
}
