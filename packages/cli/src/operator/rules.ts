import { DRAFT_CODES } from '@workflow-service/contract'
import { draftRunRules } from '@workflow-service/database'
import { argument, command, type CommandResult, group } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import { parseIdPrefix } from '../find.ts'
import { findRun } from './runs.ts'

/** `wf rules draft` */
export const ruleCommands = group('rules', 'Write the rules that the built-in agent follows.', [
  command('draft', 'Print a rules.yaml for a run that the built-in agent refused.', draft, [
    argument('<run>', 'the id of the run; the beginning of it is enough', parseIdPrefix),
  ]),
])

async function draft(ctx: CliContext, prefix: string): Promise<CommandResult> {
  const { id, organization_id: organizationId, workflow_id: workflowId, error, steps } = await findRun(ctx, prefix)
  const content = await draftRunRules(ctx.database(), organizationId, { workflowId, error, steps })
  if (content === undefined) {
    throw new CliError(`Run ${id} needs no rules: it did not fail with ${DRAFT_CODES.join(', ')}.`)
  }
  return { json: { run_id: id, content }, text: () => content }
}
