import { endWorkAfterRestore, listConnectedServices } from '@workflow-service/database'
import { command, type CommandResult, option } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'

const HELP = `
Run it after the database was restored to an earlier moment, and before the services start: payloads of that time may have been
sent since, and would be sent again. Deliveries in flight become unknown, runs that had not ended fail with
interrupted_by_restore, and due schedules wait for their next time. After a restore to the end of the WAL it is not needed.`

/** `wf after-restore` */
export const afterRestoreCommand = command(
  'after-restore',
  'End what was under way at the moment to which a backup was restored.',
  afterRestore,
  [option('--yes', 'do not ask')],
  HELP,
)

async function afterRestore(ctx: CliContext, options: { yes?: boolean }): Promise<CommandResult> {
  const db = ctx.database()
  const connected = await listConnectedServices(db)
  if (connected.length > 0) {
    throw new CliError(
      `Nothing was changed, because services use the database: ${connected.join(', ')}. Stop them first.`,
    )
  }
  if (!options.yes) {
    const { ask } = ctx.terminal
    if (!ask)
      throw new CliError('Nothing was changed. Without a terminal, --yes confirms that every unfinished run ends.')
    const answer = await ask('This ends every run that has not ended, as failed. Enter "restored" to go on: ')
    if (answer !== 'restored') throw new CliError('Nothing was changed.')
  }
  const { runs, deliveries, schedules } = await endWorkAfterRestore(db)
  return {
    json: { runs, deliveries, schedules },
    text: () =>
      `${runs} runs ended as failed, ${deliveries} deliveries became unknown, ${schedules} due schedules wait for their next time.\n` +
      'Start the services now.\n',
  }
}
