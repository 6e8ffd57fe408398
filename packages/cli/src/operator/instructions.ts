import { describeInstructions, type OrganizationName } from '@workflow-service/database'
import type { CommandResult } from '../command-result.ts'
import type { OperatorContext } from '../cli-context.ts'
import { renderTable, showTime } from '../terminal.ts'

export async function show(
  ctx: OperatorContext,
  organization: OrganizationName,
  ...parameters: unknown[]
): Promise<CommandResult> {
  const { versions: isList = false } = (parameters.at(-1) ?? {}) as { versions?: boolean }
  const { system_text: text, versions } = await describeInstructions(ctx.database(), organization.id)
  const columns = [
    { title: 'VERSION', value: ({ number }: (typeof versions)[number]) => String(number) },
    { title: 'SAVED', value: ({ saved_at: at }: (typeof versions)[number]) => showTime(new Date(at)) },
    { title: 'BY', value: ({ saved_by: by }: (typeof versions)[number]) => by },
    { title: 'TEXT', value: (row: (typeof versions)[number]) => row.text.replaceAll(/\s+/g, ' ') },
  ]
  const whenEmpty = `${organization.name} has no instructions. Give it some in the application, or in a manifest.`
  return {
    json: { system_text: text, versions },
    text: (terminal) => (isList ? renderTable(terminal, columns, versions, whenEmpty) : `${text}\n`),
  }
}
