import {
  checkServer,
  createSecretBox,
  type Database,
  endWorkAfterRestore,
  foldEmails,
  listConnectedServices,
  listDuplicateUsers,
  migrate,
  rotateSecrets,
} from '@workflow-service/database'
import type { CommandResult } from '../command-result.ts'
import type { OperatorContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import { paint, renderTable } from '../terminal.ts'
import { confirm } from './confirm.ts'

/** `wf migrate` */
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

/** `wf secrets rotate` */
export async function rotateAllSecrets(ctx: OperatorContext): Promise<CommandResult> {
  const box = createSecretBox(ctx.config.secretsKeys())
  const { rotated, current, failed } = await rotateSecrets(ctx.db, box)
  return {
    json: {
      rotated,
      current,
      failed: failed.map(({ organizationId, kind, id, reason }) => ({
        organization_id: organizationId,
        kind,
        id,
        // As before there were other kinds.
        ...(kind === 'webhook_source' && { source_id: id }),
        reason,
      })),
    },
    text: (terminal) => {
      const summary = `${rotated} encrypted again, ${current} already had the first key.\n`
      if (failed.length === 0) return summary
      const columns = [
        { title: 'ORGANIZATION', value: (row: (typeof failed)[number]) => row.organizationId, cut: 'id' as const },
        { title: 'KIND', value: (row: (typeof failed)[number]) => row.kind.replace('_', ' ') },
        { title: 'ID', value: (row: (typeof failed)[number]) => row.id, cut: 'id' as const },
        { title: 'REASON', value: (row: (typeof failed)[number]) => row.reason },
      ]
      return `${summary}${paint(terminal, 'red', `${failed.length} could not be decrypted:`)}\n${renderTable(terminal, columns, failed, '')}`
    },
    exitStatus: failed.length === 0 ? 0 : 1,
  }
}

/** `wf after-restore` */
export async function afterRestore(ctx: OperatorContext, options: { yes?: boolean }): Promise<CommandResult> {
  const { db } = ctx
  await assertNoServices(db)
  const what = 'This ends every run that has not ended, as failed.'
  await confirm(ctx, options, { what, word: 'restored', refusal: 'Nothing was changed.' })
  // The question may have been open for long.
  await assertNoServices(db)
  const { runs, deliveries, schedules, resendJobs } = await endWorkAfterRestore(db)
  return {
    json: { runs, deliveries, schedules, resend_jobs: resendJobs },
    text: () =>
      `${runs} runs ended as failed, ${deliveries} deliveries became unknown, ${schedules} due schedules wait for their next time, ${resendJobs} jobs that send payloads again stopped.\n` +
      'Start the services now.\n',
  }
}

/** @throws CliError if services are connected. */
async function assertNoServices(db: Database): Promise<void> {
  const connected = await listConnectedServices(db)
  if (connected.length === 0) return
  throw new CliError(
    `Nothing was changed, because services use the database: ${connected.join(', ')}. Stop them first.`,
  )
}
