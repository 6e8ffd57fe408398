import { createSecretBox, rotateSecrets } from '@workflow-service/database'
import type { Command } from 'commander'
import { addCommand, type CommandResult, type Run } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { paint, renderTable } from '../terminal.ts'

/** `wf secrets rotate` */
export function addSecretsCommands(program: Command, run: Run): void {
  const secrets = program.command('secrets').description('Rotate the key that encrypts signing secrets.')
  addCommand(secrets, 'rotate', 'Encrypt every stored signing secret anew under the first key of SECRETS_KEY.')
    .addHelpText('after', HELP)
    .action(run(rotate))
}

const HELP = `
To change the key: put a new one in front of the old one (SECRETS_KEY=NEW,OLD) and restart the dispatchers, run this with
the same list, then take the old key out. May be repeated, and run beside the dispatchers. openssl rand -base64 32 makes
a key.`

async function rotate(ctx: CliContext): Promise<CommandResult> {
  const box = createSecretBox(ctx.config.secretsKeys())
  const { rotated, current, failed } = await rotateSecrets(ctx.database(), box)
  return {
    json: {
      rotated,
      current,
      failed: failed.map(({ organizationId, sourceId, reason }) => ({
        organization_id: organizationId,
        source_id: sourceId,
        reason,
      })),
    },
    text: (terminal) => {
      const summary = `${rotated} encrypted anew, ${current} were under the first key already.\n`
      if (failed.length === 0) return summary
      const columns = [
        { title: 'ORGANIZATION', value: (row: (typeof failed)[number]) => row.organizationId },
        { title: 'SOURCE', value: (row: (typeof failed)[number]) => row.sourceId },
        { title: 'WHY', value: (row: (typeof failed)[number]) => row.reason },
      ]
      return `${summary}${paint(terminal, 'red', `${failed.length} could not be read:`)}\n${renderTable(terminal, columns, failed, '')}`
    },
    exitStatus: failed.length === 0 ? 0 : 1,
  }
}
