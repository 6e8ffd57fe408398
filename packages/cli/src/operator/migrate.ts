import { checkServer, foldEmails, listDuplicateUsers, migrate } from '@workflow-service/database'
import { command, type CommandResult } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'

/** `wf migrate` */
export const migrateCommand = command(
  'migrate',
  'Migrate the database to the newest schema.',
  migrateDatabase,
  [],
  `
It is safe to repeat it and to run it several times at once. The role in DATABASE_URL must own the database or its schema
"public"; it need not be a superuser. Requires PostgreSQL 15 or newer with encoding UTF8.`,
)

async function migrateDatabase(ctx: CliContext): Promise<CommandResult> {
  const problem = await checkServer(ctx.database())
  if (problem !== undefined) throw new CliError(problem)
  const { applied } = await migrate({
    databaseUrl: ctx.config.databaseUrl(),
    onRetry: (message) => ctx.terminal.writeError(`${message}\n`),
  })
  await foldEmails(ctx.database())
  for (const { email, organizationName } of await listDuplicateUsers(ctx.database())) {
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
