import { checkServer, migrate } from '@workflow-service/database'
import type { Command } from 'commander'
import { addCommand, type CommandResult, type Run } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { Refusal } from '../refusal.ts'

/** `wf migrate` */
export function addMigrateCommand(program: Command, run: Run): void {
  addCommand(program, 'migrate', 'Bring the database to the newest schema.')
    .addHelpText(
      'after',
      '\nMay be repeated, and run by several at once: each waits for the one before. The role in DATABASE_URL must own the\ndatabase or its schema "public"; nothing needs a superuser. PostgreSQL 15 or newer, encoding UTF8.',
    )
    .action(run(migrateDatabase))
}

async function migrateDatabase(ctx: CliContext): Promise<CommandResult> {
  const fault = await checkServer(ctx.database())
  if (fault !== undefined) throw new Refusal(fault)
  const { applied } = await migrate({ databaseUrl: ctx.config.databaseUrl() })
  return {
    json: { applied },
    text: () =>
      applied.length === 0
        ? 'The database is up to date.\n'
        : `Applied ${applied.join(', ')}. The database is up to date.\n`,
  }
}
