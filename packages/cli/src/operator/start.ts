import {
  CONTEXT_MAX_LENGTH,
  countCodePoints,
  isStorableText,
  START_CONFLICTS,
  trimWhiteSpace,
} from '@workflow-service/contract'
import { type AppStartOutcome, newId, operatorOf, recordAppStart, showRun } from '@workflow-service/database'
import { argument, command, type CommandResult, option, ORGANIZATION } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { CliError, UsageError } from '../cli-error.ts'
import { findId, findOrganization, findWorkflow, parseIdPrefix } from '../find.ts'
import { followRun } from '../follow-run.ts'

const HELP = `
It records the start in the database, as the gateway does; a runner begins it within 2 seconds. With --follow, the exit status is 1 if
the run fails. Ctrl-C ends only the watching: the run goes on.

Examples:
  wf start "Forward orders" "order_id: A-1" --follow
  echo '{"order_id": "A-1"}' | wf start "Forward orders" -
`

/** `wf start WORKFLOW TEXT|-` */
export const startCommand = command(
  'start',
  'Start a workflow by the rules of the public API, as the operator.',
  start,
  [
    ORGANIZATION,
    argument('<workflow>', 'its id or name'),
    argument('<text>', 'the context that the agent receives; - reads it from standard input'),
    option('--session <id>', 'start in this open session (default: a new one)', parseIdPrefix),
    option('-f, --follow', 'show how the run goes, until its end or Ctrl-C; with --json, one object per line'),
  ],
  HELP,
)

interface Options {
  readonly organization?: string
  readonly session?: string
  readonly follow?: boolean
  readonly json?: boolean
}

async function start(ctx: CliContext, given: string, text: string, options: Options): Promise<CommandResult> {
  const context = trimWhiteSpace(text === '-' ? await ctx.readInput() : text)
  const length = countCodePoints(context)
  if (length === 0 || length > CONTEXT_MAX_LENGTH || !isStorableText(context)) {
    throw new UsageError(`The text must have 1 to ${CONTEXT_MAX_LENGTH} characters of valid Unicode; it has ${length}.`)
  }
  const organization = await findOrganization(ctx, options.organization)
  const workflow = await findWorkflow(ctx, organization, given)
  const sessionId = options.session === undefined ? null : await findId(ctx, 'session', options.session)
  const runId = newId()
  const { principal } = operatorOf(organization.id)
  const outcome = await recordAppStart(ctx.database(), {
    principal: { ...principal, userId: null },
    requestId: newId(),
    workflowId: workflow.id,
    runId,
    sessionId,
    context,
  })
  if (outcome.kind !== 'accepted' && outcome.kind !== 'replayed')
    throw refusal(outcome.kind, workflow.name, organization.name)
  ctx.notify(organization.id, 'runs', 'sessions', 'workflows')
  if (options.follow) {
    const details = await showRun(ctx.database(), runId)
    if (details) return await followRun(ctx, details, options.json ?? false)
  }
  return {
    json: { id: runId, workflow_id: workflow.id, session_id: outcome.sessionId },
    text: () =>
      `Run ${runId} of ${workflow.name} is accepted, in session ${outcome.sessionId}. See how it goes: wf runs show ${runId} --follow\n`,
  }
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
