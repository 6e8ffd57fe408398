import { createSecretBox, rotateSecrets } from '@workflow-service/database'
import { type CommandResult, toSnakeCase } from '../command-result.ts'
import type { OperatorContext } from '../cli-context.ts'
import { paint, renderTable } from '../terminal.ts'

export async function rotate(ctx: OperatorContext): Promise<CommandResult> {
  const box = createSecretBox(ctx.config.secretsKeys())
  const { rotated, current, failed } = await rotateSecrets(ctx.db, box)
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
