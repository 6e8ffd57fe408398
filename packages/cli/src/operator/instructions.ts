import { describeInstructions } from '@workflow-service/database'
import type { CommandResult } from '../command-result.ts'
import type { OrganizationContext } from '../cli-context.ts'
import { type Column, renderTable } from '../terminal.ts'

export async function show(
  { db, organization }: OrganizationContext,
  { versions: isList = false }: { versions?: boolean },
): Promise<CommandResult> {
  const { system_text: text, versions } = await describeInstructions(db, organization.id)
  const columns: Column<(typeof versions)[number]>[] = [
    { title: 'VERSION', value: ({ number }) => String(number) },
    { title: 'SAVED', time: ({ saved_at: at }) => at },
    { title: 'BY', value: ({ saved_by: by }) => by },
    { title: 'TEXT', value: (row) => row.text.replaceAll(/\s+/g, ' ') },
  ]
  const whenEmpty = `${organization.name} has no instructions. Give it some in the application, or in a manifest.`
  return {
    json: { system_text: text, versions },
    text: (terminal) => (isList ? renderTable(terminal, columns, versions, whenEmpty) : `${text}\n`),
  }
}
