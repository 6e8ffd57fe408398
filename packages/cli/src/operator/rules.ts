import { DRAFT_CODES } from '@workflow-service/contract'
import { draftRunRules } from '@workflow-service/database'
import type { CommandResult } from '../command-result.ts'
import type { OperatorContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import { findRun } from './runs.ts'

/** `wf rules draft RUN` */
export async function draft(
  ctx: OperatorContext,
  prefix: string,
  { organization }: { organization?: string },
): Promise<CommandResult> {
  const {
    id,
    organization_id: organizationId,
    workflow_id: workflowId,
    ...run
  } = await findRun(ctx, prefix, organization)
  const content = await draftRunRules(ctx.db, organizationId, { ...run, workflowId })
  if (content === undefined) {
    throw new CliError(`Run ${id} needs no rules: it did not fail with ${DRAFT_CODES.join(', ')}.`)
  }
  return { json: { run_id: id, content }, text: () => content }
}
