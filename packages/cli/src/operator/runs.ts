import { APPROVAL_REASON_MAX_LENGTH, type RunStatus } from '@workflow-service/contract'
import { RUN_STATUSES } from '@workflow-service/contract/app'
import {
  cancelQueuedRuns,
  cancelRun,
  decideApprovals,
  findWorkflowNames,
  listRuns,
  listSourceStates,
  operatorOf,
  readWorkflowTexts,
  type RunRow,
  type RunDetails,
  showRun,
} from '@workflow-service/database'
import { checkWorkflow } from '@workflow-service/rules/check-workflow'
import { InvalidArgumentError } from 'commander'
import { argument, command, type CommandResult, group, option, ORGANIZATION } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { findId, findOrganization, findWorkflowId, parseIdPrefix } from '../find.ts'
import { followRun } from '../follow-run.ts'
import { followRuns } from '../follow-runs.ts'
import { checkPeriod, parseId, parseLimit, parseTime } from '../parse-options.ts'
import { CliError } from '../cli-error.ts'
import { type Column, renderTable, showDuration, withoutControls } from '../terminal.ts'
import { STATUS_COLOURS, formatRun } from '../format-run.ts'

interface ListOptions {
  organization?: string
  status?: RunStatus
  workflow?: string
  session?: string
  follow?: boolean
  json?: boolean
  since?: Date
  until?: Date
  limit: number
}

const RUN = argument('<id>', 'the id of the run', parseIdPrefix)
const DELIVERY = option('--delivery <id>', 'only this delivery', parseId)

/** `wf runs list|show|cancel|approve|decline` */
export const runCommands = group(
  'runs',
  'List, show and cancel runs, and approve or decline payloads that wait. Each accepted start becomes one run.',
  [
    command('list', 'List runs, newest first.', list, [
      ORGANIZATION,
      option('--status <status>', 'only runs with this status').choices(RUN_STATUSES),
      option('--workflow <workflow>', 'only runs of this workflow, by id or name'),
      option('--session <id>', 'only runs of this session', parseIdPrefix),
      option(
        '-f, --follow',
        'keep printing runs as their status changes, until Ctrl-C; with --json, one object per line',
      ),
      option(
        '--since <time>',
        'accepted from this time on: 2026-01-31T09:00:00Z, or a duration ago: 15m, 2h, 7d',
        parseTime,
      ),
      option('--until <time>', 'accepted before this time', parseTime).conflicts('follow'),
      option('--limit <n>', 'maximum number of runs', parseLimit, 50),
    ]),
    command('show', 'Show a run: its journal with times, and its deliveries.', show, [
      argument('<id>', 'the id of the run, which is the id of the start; the beginning of it is enough', parseIdPrefix),
      option('-f, --follow', 'show how it goes, until its end or Ctrl-C; with --json, one object per line'),
    ]),
    command('cancel', 'End a run before its next step, or all queued runs of a workflow or session.', cancel, [
      argument('[id]', 'the id of the run', parseIdPrefix),
      ORGANIZATION,
      option('--workflow <workflow>', 'all queued runs of this workflow, by id or name').conflicts('session'),
      option('--session <id>', 'all queued runs of this session', parseIdPrefix),
    ]),
    command(
      'approve',
      'Approve the waiting payloads of a run. They are sent exactly as shown.',
      (ctx, id: string, options: DecisionOptions) => decide(ctx, id, 'approved', options),
      [RUN, DELIVERY],
    ),
    command(
      'decline',
      'Decline the waiting payloads of a run. They are never sent.',
      (ctx, id: string, options: DecisionOptions) => decide(ctx, id, 'declined', options),
      [RUN, DELIVERY, option('--reason <text>', 'why; the agent reads it', parseReason)],
    ),
  ],
)

interface DecisionOptions {
  delivery?: string
  reason?: string
}

async function decide(
  ctx: CliContext,
  prefix: string,
  decision: 'approved' | 'declined',
  { delivery: deliveryId, reason }: DecisionOptions,
): Promise<CommandResult> {
  const { id: runId, organization_id: organizationId } = await findRun(ctx, prefix)
  const request = { decision, reason: reason ?? null, runId, deliveryId }
  const outcome = await decideApprovals(ctx.database(), request, operatorOf(organizationId))
  const what = deliveryId === undefined ? `Run ${runId}` : `Delivery ${deliveryId}`
  if (outcome.kind === 'not_found') throw new CliError(`${what} has asked for no approval.`)
  if (outcome.kind === 'not_waiting') {
    throw new CliError(`${what} does not wait for an approval: it was decided, or it expired.`)
  }
  if (outcome.kind === 'invalid') throw new CliError(outcome.reason)
  ctx.notify(organizationId, 'runs', 'sessions')
  const { deliveryIds } = outcome
  return {
    json: { run_id: runId, decision, delivery_ids: deliveryIds },
    text: () => deliveryIds.map((id) => `Delivery ${id} is ${decision}.\n`).join(''),
  }
}

interface CancelOptions {
  organization?: string
  workflow?: string
  session?: string
}

async function cancel(
  ctx: CliContext,
  prefix: string | undefined,
  { organization, workflow, session }: CancelOptions,
): Promise<CommandResult> {
  if ((prefix === undefined) === (workflow === undefined && session === undefined)) {
    throw new CliError('Name a run, or --workflow or --session for all queued runs of one.')
  }
  if (prefix !== undefined) return await cancelOne(ctx, prefix)
  const { id: organizationId, ...named } = await findOrganization(ctx, organization)
  const kind = workflow === undefined ? 'session' : 'workflow'
  const id =
    (await findWorkflowId(ctx, { id: organizationId, ...named }, workflow)) ?? (await findId(ctx, 'session', session!))
  const viewer = { organizationId, memberId: null }
  const { cancelled, isMore } = await cancelQueuedRuns(ctx.database(), viewer, { kind, id }, operatorOf(organizationId))
  ctx.notify(organizationId, 'runs', 'sessions')
  return {
    json: { cancelled, is_more: isMore },
    text: () => `${cancelled} queued runs are cancelled.${isMore ? ' More are queued: repeat the command.' : ''}\n`,
  }
}

async function cancelOne(ctx: CliContext, prefix: string): Promise<CommandResult> {
  const { id, organization_id: organizationId } = await findRun(ctx, prefix)
  const viewer = { organizationId, memberId: null }
  const outcome = await cancelRun(ctx.database(), viewer, id, operatorOf(organizationId))
  if (outcome.kind === 'not_found') throw new CliError(`The workflow of run ${id} is deleted.`)
  if (outcome.kind === 'ended') throw new CliError(`Run ${id} has ended already.`)
  ctx.notify(organizationId, 'runs', 'sessions')
  return { json: { run_id: id, status: 'cancelled' }, text: () => `Run ${id} is cancelled.\n` }
}

function parseReason(text: string): string {
  const reason = text.trim()
  if (reason === '' || reason.length > APPROVAL_REASON_MAX_LENGTH || !reason.isWellFormed()) {
    throw new InvalidArgumentError(`must be a text of at most ${APPROVAL_REASON_MAX_LENGTH} characters`)
  }
  return reason
}

async function list(ctx: CliContext, options: ListOptions): Promise<CommandResult | undefined> {
  checkPeriod(options)
  const organization = await findOrganization(ctx, options.organization)
  const { status, workflow, session, since, until, limit } = options
  const workflowId = await findWorkflowId(ctx, organization, workflow)
  const sessionId = session === undefined ? undefined : await findId(ctx, 'session', session)
  const filter = { status, workflowId, sessionId, since, until, limit }
  const runs = await listRuns(ctx.database(), organization.id, filter)
  if (options.follow) return await followRuns(ctx, organization.id, filter, runs, options.json ?? false)
  const ids = runs.map((row) => row.workflow_id)
  const names = await findWorkflowNames(ctx.database(), organization.id, ids)
  const hints = await findHints(ctx, organization.id, runs)
  return {
    json: runs.map(toRunJson),
    text: (terminal) => `${renderTable(terminal, runColumns(names), runs, 'No runs match.')}${hints}`,
  }
}

/** Says what the built-in agent cannot follow in the workflows of the runs, one line for each workflow. */
async function findHints(ctx: CliContext, organizationId: string, runs: readonly RunRow[]): Promise<string> {
  const ids = [...new Set(runs.map((row) => row.workflow_id))]
  if (ids.length === 0) return ''
  const sources = await listSourceStates(ctx.database(), organizationId)
  const lines: string[] = []
  for (const workflow of await readWorkflowTexts(ctx.database(), organizationId, ids)) {
    const { warnings } = await checkWorkflow(workflow, sources)
    const texts = warnings.map(({ message }) => message).join('; ')
    if (texts !== '') lines.push(withoutControls(`Hint: ${workflow.name}: ${texts}.`))
  }
  return lines.length === 0 ? '' : `\n${lines.join('\n')}\n`
}

async function show(
  ctx: CliContext,
  prefix: string,
  options: { follow?: boolean; json?: boolean },
): Promise<CommandResult> {
  const details = await findRun(ctx, prefix)
  if (options.follow) return await followRun(ctx, details, options.json ?? false)
  return { json: toDetailsJson(details), text: (terminal) => formatRun(terminal, details) }
}

export async function findRun(ctx: CliContext, prefix: string): Promise<RunDetails> {
  const id = await findId(ctx, 'run', prefix)
  const details = await showRun(ctx.database(), id)
  if (!details) throw new CliError(`There is no run ${id}. List the runs with wf runs list.`)
  return details
}

/** Returns the columns of a table of runs. `names` maps the workflows' ids to their names. */
export function runColumns(names: ReadonlyMap<string, string>): readonly Column<RunRow>[] {
  return [
    { title: 'ACCEPTED (UTC)', time: (row) => row.created_at },
    { title: 'STATUS', value: (row) => row.status, colour: (row) => STATUS_COLOURS[row.status] },
    { title: 'TOOK', value: totalDuration },
    { title: 'RUN', value: (row) => row.id, cut: 'id' },
    { title: 'WORKFLOW', value: (row) => names.get(row.workflow_id) ?? row.workflow_id, cut: 'name' },
    { title: 'ERROR', value: (row) => row.error ?? '' },
  ]
}

/** Formats the time from acceptance to the end. */
function totalDuration({ created_at, finished_at }: RunRow): string {
  return showDuration(finished_at && finished_at.getTime() - created_at.getTime())
}

/** Returns the run's fields that all commands print as JSON. */
export function toRunJson(row: RunRow): RunRow {
  const { id, workflow_id, session_id, status, attempts, error, created_at, started_at, finished_at } = row
  return { id, workflow_id, session_id, status, attempts, error, created_at, started_at, finished_at }
}

function toDetailsJson({ steps, ...run }: RunDetails): object {
  return {
    ...run,
    steps: steps.map(({ position, kind, data, createdAt }) => ({ position, kind, data, created_at: createdAt })),
  }
}
