import {
  APPROVAL_REASON_MAX_LENGTH,
  countCodePoints,
  DRAFT_CODES,
  readRefusal,
  type RunStatus,
} from '@workflow-service/contract'
import {
  cancelQueuedRuns,
  cancelRun,
  decideApprovals,
  draftRunRules,
  findWorkflowNames,
  listRuns,
  listSourceStates,
  operatorOf,
  readExample,
  readWorkflowTexts,
  type RunRow,
  type RunDetails,
  needsSearch,
  searchVisibleRuns,
  showRun,
} from '@workflow-service/database'
import { checkWorkflow } from '@workflow-service/rules/check-workflow'
import type { CommonOptions, FollowOptions } from '../cli-command.ts'
import type { CommandResult, PrintedResult } from '../command-result.ts'
import type { OperatorContext, OrganizationContext } from '../cli-context.ts'
import { findId, findWorkflowId, openOrganization } from './find.ts'
import { followRun, followRuns } from './follow-runs.ts'
import { CliError, UsageError } from '../cli-error.ts'
import { renderTable, withoutControls } from '../terminal.ts'
import { formatRun } from './format-run.ts'
import { runColumns } from '../run-columns.ts'

interface ListOptions extends FollowOptions {
  status?: RunStatus
  workflow?: string
  session?: string
  search?: string
  limit: number
}

interface DecisionOptions extends CommonOptions {
  delivery?: string
  reason?: string
}

export async function approve(ctx: OperatorContext, id: string, options: DecisionOptions): Promise<CommandResult> {
  return await decide(ctx, id, 'approved', options)
}

export async function decline(ctx: OperatorContext, id: string, options: DecisionOptions): Promise<CommandResult> {
  return await decide(ctx, id, 'declined', options)
}

async function decide(
  ctx: OperatorContext,
  prefix: string,
  decision: 'approved' | 'declined',
  { delivery: deliveryId, organization, ...options }: DecisionOptions,
): Promise<CommandResult> {
  const reason = options.reason?.trim()
  const length = countCodePoints(reason ?? '')
  if (reason === '' || length > APPROVAL_REASON_MAX_LENGTH || reason?.isWellFormed() === false) {
    throw new UsageError(`The reason must be a text of at most ${APPROVAL_REASON_MAX_LENGTH} characters.`)
  }
  const { id: runId, organization_id: organizationId } = await findRun(ctx, prefix, organization)
  const request = { decision, reason: reason ?? null, runId, deliveryId }
  const outcome = await decideApprovals(ctx.db, request, operatorOf(organizationId))
  const what = deliveryId === undefined ? `Run ${runId}` : `Delivery ${deliveryId}`
  if (outcome.kind === 'not_found') throw new CliError(`${what} has asked for no approval.`)
  if (outcome.kind === 'not_waiting') {
    throw new CliError(`${what} does not wait for an approval: it was decided, it expired, or the run has ended.`)
  }
  if (outcome.kind === 'invalid') throw new CliError(outcome.reason)
  const { deliveryIds } = outcome
  return {
    json: { run_id: runId, decision, delivery_ids: deliveryIds },
    text: () => deliveryIds.map((id) => `Delivery ${id} is ${decision}.\n`).join(''),
  }
}

interface CancelOptions extends CommonOptions {
  workflow?: string
  session?: string
}

/** `wf runs cancel ID`, `--workflow WORKFLOW`, `--session ID` */
export async function cancel(
  ctx: OperatorContext,
  prefix: string | undefined,
  { organization, workflow, session }: CancelOptions,
): Promise<CommandResult> {
  if ((prefix === undefined) === (workflow === undefined && session === undefined)) {
    throw new UsageError('Name a run, or --workflow or --session for all queued runs of one.')
  }
  if (prefix !== undefined) return await cancelOne(ctx, prefix, organization)
  const opened = await openOrganization(ctx, organization)
  const organizationId = opened.organization.id
  const kind = workflow === undefined ? 'session' : 'workflow'
  const id = (await findWorkflowId(opened, workflow)) ?? (await findId(ctx, 'session', session!, organizationId))
  const viewer = { organizationId, memberId: null }
  const { cancelled, isMore } = await cancelQueuedRuns(ctx.db, viewer, { kind, id }, operatorOf(organizationId))
  return {
    json: { cancelled, is_more: isMore },
    text: () =>
      `${cancelled} queued ${cancelled === 1 ? 'run is' : 'runs are'} cancelled.${isMore ? ' More are queued: repeat the command.' : ''}\n`,
  }
}

async function cancelOne(
  ctx: OperatorContext,
  prefix: string,
  organization: string | undefined,
): Promise<CommandResult> {
  const { id, organization_id: organizationId } = await findRun(ctx, prefix, organization)
  const viewer = { organizationId, memberId: null }
  const outcome = await cancelRun(ctx.db, viewer, id, operatorOf(organizationId))
  if (outcome.kind === 'not_found') throw new CliError(`The workflow of run ${id} is deleted.`)
  if (outcome.kind === 'ended') throw new CliError(`Run ${id} has ended already.`)
  return { json: { run_id: id, status: 'cancelled' }, text: () => `Run ${id} is cancelled.\n` }
}

export async function list(ctx: OrganizationContext, options: ListOptions): Promise<CommandResult | PrintedResult> {
  const { db, organization } = ctx
  const { status, workflow, session, search, since, until, limit } = options
  const workflowId = await findWorkflowId(ctx, workflow)
  const sessionId = session === undefined ? undefined : await findId(ctx, 'session', session, ctx.organization.id)
  const filter = { status, workflowId, sessionId, since, until, limit }
  const isSearched = await needsSearch(db, organization.id, { ...filter, search })
  const found = isSearched && (await searchAllRuns(ctx, { ...filter, search }))
  const read = async () => await listRuns(db, organization.id, found ? { ids: found, limit } : filter)
  if (options.follow) return await followRuns(ctx, filter, read, options)
  const runs = await read()
  const ids = runs.map((row) => row.workflow_id)
  const names = await findWorkflowNames(db, organization.id, ids)
  const hints = await findHints(ctx, runs)
  return {
    json: runs,
    text: (terminal) => `${renderTable(terminal, runColumns(names), runs, 'No runs match.')}${hints}`,
  }
}

/** Runs that match, the newest ones; a page may have fewer although others follow. */
async function searchAllRuns(
  { db, organization }: OrganizationContext,
  query: Omit<Parameters<typeof searchVisibleRuns>[2], 'after'>,
): Promise<string[]> {
  const viewer = { organizationId: organization.id, memberId: null }
  const found: string[] = []
  let after: Awaited<ReturnType<typeof searchVisibleRuns>>['next']
  do {
    const page = await searchVisibleRuns(db, viewer, { ...query, limit: query.limit - found.length, after })
    found.push(...page.rows)
    after = page.next
  } while (after && found.length < query.limit)
  return found
}

/** Says what the built-in agent cannot follow in the workflows of the runs, one line for each workflow. */
async function findHints({ db, organization }: OrganizationContext, runs: readonly RunRow[]): Promise<string> {
  const ids = [...new Set(runs.map((row) => row.workflow_id))]
  if (ids.length === 0) return ''
  const sources = await listSourceStates(db, organization.id)
  const lines: string[] = []
  for (const workflow of await readWorkflowTexts(db, organization.id, ids)) {
    const { warnings } = await checkWorkflow(workflow, sources, {
      readExample: (source) => readExample(db, organization.id, source),
    })
    const texts = warnings.map(({ message }) => message).join('; ')
    if (texts !== '') lines.push(withoutControls(`Hint: ${workflow.name}: ${texts}.`))
  }
  return lines.length === 0 ? '' : `\n${lines.join('\n')}\n`
}

export async function show(
  ctx: OperatorContext,
  prefix: string,
  options: FollowOptions,
): Promise<CommandResult | PrintedResult> {
  const details = await findRun(ctx, prefix, options.organization)
  if (options.follow) return await followRun(ctx, details, options)
  return { json: toDetailsJson(details), text: (terminal) => formatRun(terminal, details) }
}

async function findRun(ctx: OperatorContext, prefix: string, organization: string | undefined): Promise<RunDetails> {
  const id = await findId(ctx, 'run', prefix, organization)
  const details = await showRun(ctx.db, id)
  if (!details) throw new CliError(`There is no run ${id}. List the runs with wf runs list.`)
  return details
}

/** `wf rules draft RUN` */
export async function draftRules(
  ctx: OperatorContext,
  prefix: string,
  { organization }: CommonOptions,
): Promise<CommandResult> {
  const {
    id,
    organization_id: organizationId,
    workflow_id: workflowId,
    ...run
  } = await findRun(ctx, prefix, organization)
  const refusal = readRefusal(run)
  const content = refusal && (await draftRunRules(ctx.db, organizationId, workflowId, refusal))
  if (content === undefined) {
    throw new CliError(`Run ${id} needs no rules: it did not fail with ${DRAFT_CODES.join(', ')}.`)
  }
  return { json: { run_id: id, content }, text: () => content }
}

function toDetailsJson({ steps, ...run }: RunDetails): object {
  return {
    ...run,
    steps: steps.map(({ position, kind, data, createdAt }) => ({ position, kind, data, created_at: createdAt })),
  }
}
