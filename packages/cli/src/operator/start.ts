import {
  CONTEXT_MAX_LENGTH,
  countCodePoints,
  isStorableText,
  START_CONFLICTS,
  trimWhiteSpace,
} from '@workflow-service/contract'
import { type AppStartOutcome, newId, operatorOf, recordAppStart, showRun } from '@workflow-service/database'
import type { FollowOptions } from '../cli-command.ts'
import type { CommandResult, PrintedResult } from '../command-result.ts'
import type { OrganizationContext } from '../cli-context.ts'
import { CliError, UsageError } from '../cli-error.ts'
import { findId } from './find.ts'
import { followRun } from './follow-runs.ts'
import { findWorkflow, followStarted, startResult } from '../workflows.ts'

/** `wf start WORKFLOW TEXT|-` */
export async function start(
  ctx: OrganizationContext,
  given: string,
  text: string,
  options: FollowOptions & { readonly session?: string },
): Promise<CommandResult | PrintedResult> {
  const { db, organization } = ctx
  const context = trimWhiteSpace(text === '-' ? await ctx.readInput() : text)
  const length = countCodePoints(context)
  if (length === 0 || length > CONTEXT_MAX_LENGTH || !isStorableText(context)) {
    throw new UsageError(`The text must have 1 to ${CONTEXT_MAX_LENGTH} characters of valid Unicode; it has ${length}.`)
  }
  const workflow = await findWorkflow(ctx.workflows, given)
  const sessionId =
    options.session === undefined ? null : await findId(ctx, 'session', options.session, organization.id)
  const runId = newId()
  const { principal } = operatorOf(organization.id)
  const outcome = await recordAppStart(db, {
    principal: { ...principal, userId: null },
    requestId: newId(),
    workflowId: workflow.id,
    runId,
    sessionId,
    context,
  })
  if (outcome.kind !== 'accepted' && outcome.kind !== 'replayed')
    throw refusal(outcome.kind, workflow.name, organization.name)
  const started = { id: runId, workflow_id: workflow.id, session_id: outcome.sessionId }
  const accepted = startResult(started, workflow.name)
  if (!options.follow) return accepted
  return await followStarted(ctx, accepted, async () => {
    const details = await showRun(db, runId)
    return details ? await followRun(ctx, details, options) : accepted
  })
}

function refusal(
  kind: Exclude<AppStartOutcome['kind'], 'accepted' | 'replayed'>,
  name: string,
  organization: string,
): CliError {
  switch (kind) {
    case 'organization_suspended':
      return new CliError(`${organization} is suspended. End that with wf organizations resume.`, { code: kind })
    case 'session_not_found':
      return new CliError(`${organization} has no such session. List them with wf sessions list.`, { code: kind })
    case 'session_closed':
      return new CliError('The session is closed. Leave --session out to start in a new one.', { code: kind })
    case 'workflow_not_found':
    case 'id_taken':
      return new CliError(`${name} was changed meanwhile. Try again.`, { code: kind })
    default:
      return new CliError(`${name} was not started. ${START_CONFLICTS[kind]}`, { code: kind })
  }
}
