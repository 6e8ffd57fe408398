import { checkServer, foldEmails, listDuplicateUsers, migrate } from '@workflow-service/database'
import type { CommandResult } from '../command-result.ts'
import type { OperatorContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'

export async function migrateDatabase(ctx: OperatorContext): Promise<CommandResult> {
  const problem = await checkServer(ctx.db)
  if (problem !== undefined) throw new CliError(problem)
  const { applied } = await migrate({
    databaseUrl: ctx.config.databaseUrl(),
    onRetry: (message) => ctx.terminal.writeError(`${message}\n`),
  })
  await foldEmails(ctx.db)
  for (const { email, organizationName } of await listDuplicateUsers(ctx.db)) {
    ctx.terminal.writeError(
      `${organizationName} has two users with the address ${email}, which differ in case only: remove one of them in the application. Until then, a manifest can name only one.\n`,
    )
  }
  return {
    json: { applied },
    text: () =>
      applied.length === 0
        ? 'The database is up to date.\n'
        : `Applied ${applied.join(', ')}. The database is up to date.\n`,
  }
}
