import { endWorkAfterRestore, listConnectedServices } from '@workflow-service/database'
import type { CommandResult } from '../command-result.ts'
import type { OperatorContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import { confirm } from './confirm.ts'

export async function afterRestore(ctx: OperatorContext, options: { yes?: boolean }): Promise<CommandResult> {
  const { db } = ctx
  const connected = await listConnectedServices(db)
  if (connected.length > 0) {
    throw new CliError(
      `Nothing was changed, because services use the database: ${connected.join(', ')}. Stop them first.`,
    )
  }
  const what = 'This ends every run that has not ended, as failed.'
  await confirm(ctx, options, { what, word: 'restored', refusal: 'Nothing was changed.' })
  const { runs, deliveries, schedules } = await endWorkAfterRestore(db)
  return {
    json: { runs, deliveries, schedules },
    text: () =>
      `${runs} runs ended as failed, ${deliveries} deliveries became unknown, ${schedules} due schedules wait for their next time.\n` +
      'Start the services now.\n',
  }
}
