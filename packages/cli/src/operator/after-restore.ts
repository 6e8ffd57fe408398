import { endWorkAfterRestore, listConnectedServices } from '@workflow-service/database'
import type { CommandResult } from '../command-result.ts'
import type { OperatorContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'

export async function afterRestore(
  { db, terminal }: OperatorContext,
  options: { yes?: boolean },
): Promise<CommandResult> {
  const connected = await listConnectedServices(db)
  if (connected.length > 0) {
    throw new CliError(
      `Nothing was changed, because services use the database: ${connected.join(', ')}. Stop them first.`,
    )
  }
  if (!options.yes) {
    const { ask } = terminal
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
