import { writeManifest } from '@workflow-service/database/manifest'
import type { OrganizationContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import type { PrintedResult } from '../command-result.ts'
import { findWorkflowId } from './find.ts'

interface Options {
  readonly workflow?: string
  readonly portable?: boolean
  readonly json?: boolean
}

export async function exportOrganization(
  ctx: OrganizationContext,
  { workflow, json: isJson = false, portable: isPortable = false }: Options,
): Promise<PrintedResult> {
  const { db, organization, terminal } = ctx
  const options = {
    format: isJson ? 'json' : 'yaml',
    workflowId: await findWorkflowId(ctx, workflow),
    isPortable,
  } as const
  const isFound = await writeManifest(db, organization.id, options, terminal.write)
  if (!isFound) throw new CliError(`${organization.name} has no workflow ${workflow}.`)
  return 0
}
