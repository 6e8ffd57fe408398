import type { OrganizationName } from '@workflow-service/database'
import { writeManifest } from '@workflow-service/database/manifest'
import type { OperatorContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import { findWorkflowId } from './find.ts'

interface Options {
  readonly workflow?: string
  readonly portable?: boolean
  readonly json?: boolean
}

export async function exportOrganization(
  ctx: OperatorContext,
  organization: OrganizationName,
  _given: string | undefined,
  options: Options,
): Promise<undefined> {
  const { workflow, json: isJson = false, portable: isPortable = false } = options
  const workflowId = await findWorkflowId(ctx, organization, workflow)
  const isFound = await writeManifest(
    ctx.database(),
    organization.id,
    { format: isJson ? 'json' : 'yaml', workflowId, isPortable },
    ctx.terminal.write,
  )
  if (!isFound) throw new CliError(`${organization.name} has no workflow ${workflow}.`)
}
