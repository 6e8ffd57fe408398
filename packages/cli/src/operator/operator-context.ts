import { createChangeNotifier, createDatabase, type ChangeNotifier, type Database } from '@workflow-service/database'
import { createInternalClient } from '@workflow-service/service-kit/internal-client'
import type { CliContext, Opened, OperatorContext } from '../cli-context.ts'
import { readCliConfig } from './config.ts'
import { toOperatorError } from './operator-error.ts'

/** Longer than in the services, because a manifest may have thousands of workflows. */
const STATEMENT_TIMEOUT_MS = 120_000

export function openOperatorContext(ctx: CliContext): Opened<OperatorContext> {
  const config = readCliConfig(ctx.env)
  let database: Database | undefined
  let notices: ChangeNotifier | undefined
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
    notify: (organizationId, ...topics) => {
      // A page that misses a notice reads again by itself after a while.
      notices ??= createChangeNotifier({ db: context.db, onError: () => {} })
      notices.add(organizationId, ...topics)
    },
  }
  return {
    context,
    explain: (error) => toOperatorError(error, config),
    close: async () => {
      await notices?.close()
      await database?.close()
    },
  }
}
