import { createSecretBox, rotateSecrets } from '@workflow-service/database'
import { command, type CommandResult, group, toSnakeCase } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { paint, renderTable } from '../terminal.ts'

const HELP = `
To replace the key (generate one with openssl rand -base64 32):
  1. Restart all dispatchers with SECRETS_KEY=OLD,NEW, so that each of them can read the new key.
  2. Restart all dispatchers with SECRETS_KEY=NEW,OLD. They now encrypt with the new key.
  3. Run wf secrets rotate with SECRETS_KEY=NEW,OLD.
  4. Restart all dispatchers with SECRETS_KEY=NEW.
It is safe to repeat it and to run it while dispatchers run.`

/** `wf secrets rotate` */
export const secretCommands = group('secrets', 'Rotate the key that encrypts the signing secrets.', [
  command('rotate', 'Encrypt every stored signing secret with the first key of SECRETS_KEY.', rotate, [], HELP),
])

async function rotate(ctx: CliContext): Promise<CommandResult> {
  const box = createSecretBox(ctx.config.secretsKeys())
  const { rotated, current, failed } = await rotateSecrets(ctx.database(), box)
  return {
    json: {
      rotated,
      current,
      failed: failed.map((row) => toSnakeCase(row, ['organizationId', 'sourceId', 'reason'])),
    },
    text: (terminal) => {
      const summary = `${rotated} encrypted again, ${current} already had the first key.\n`
      if (failed.length === 0) return summary
      const columns = [
        { title: 'ORGANIZATION', value: (row: (typeof failed)[number]) => row.organizationId, cut: 'id' as const },
        { title: 'SOURCE', value: (row: (typeof failed)[number]) => row.sourceId, cut: 'id' as const },
        { title: 'REASON', value: (row: (typeof failed)[number]) => row.reason },
      ]
      return `${summary}${paint(terminal, 'red', `${failed.length} could not be decrypted:`)}\n${renderTable(terminal, columns, failed, '')}`
    },
    exitStatus: failed.length === 0 ? 0 : 1,
  }
}
