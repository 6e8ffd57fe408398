import type { DeliveryKind, DeliveryOutcome } from '@workflow-service/contract'
import { type DeliveryLogQuery, listDeliveries, type LoggedDelivery } from '@workflow-service/database'
import type { FollowOptions } from '../cli-command.ts'
import { type CommandResult, createRowPrinter, listResult, type PrintedResult } from '../command-result.ts'
import type { OrganizationContext } from '../cli-context.ts'
import { findSource } from './find.ts'
import { followDeliveries, isFinished } from './follow-deliveries.ts'
import { UsageError } from '../cli-error.ts'
import { stateColour } from '../run-columns.ts'
import { type Column, showDuration, timeColumn } from '../terminal.ts'

interface LogsOptions extends FollowOptions {
  outcome?: DeliveryOutcome
  kind?: DeliveryKind
  limit: number
}

/** `wf logs SOURCE` */
export async function logs(
  ctx: OrganizationContext,
  text: string | undefined,
  options: LogsOptions,
): Promise<CommandResult | PrintedResult> {
  const { db, organization } = ctx
  if (text === undefined) throw new UsageError('Name a webhook source: wf logs SOURCE. List them with wf sources list.')
  const source = await findSource(ctx, text, { includeDeleted: true })
  const { outcome, kind, since, until, limit } = options
  const query = { sourceId: source.id, outcome, kind, since, until, limit }
  const hasFilter = [outcome, kind, since, until].some((value) => value !== undefined)
  const emptyText = hasFilter ? 'has nothing that matches the options' : 'is empty'
  const { rows: newest } = await listDeliveries(db, organization.id, query)
  if (options.follow) return await follow(ctx, query, newest, options)
  return listResult(newest, COLUMNS, `The log of ${source.name} ${emptyText}.`)
}

const COLUMNS: readonly Column<LoggedDelivery>[] = [
  timeColumn('TIME (UTC)', ({ created_at }) => created_at),
  { title: 'KIND', value: ({ kind }) => kind, shortValue: ({ kind }) => (kind === 'verification' ? 'verify' : kind) },
  { title: 'OUTCOME', value: ({ outcome }) => outcome, colour: ({ outcome }) => stateColour(outcome) },
  { title: 'STATUS', value: ({ status }) => (status === null ? '–' : String(status)) },
  { title: 'TOOK', value: ({ duration_ms }) => showDuration(duration_ms) },
  { title: 'RUN', value: ({ run_id }) => run_id ?? '–', cut: 'id' },
  {
    title: 'REASON OR ANSWER',
    value: ({ reason, answer }) => reason ?? (answer === null ? '' : JSON.stringify(answer)),
  },
]

/** Prints the newest entries and then, every second until Ctrl-C, those that finished since, oldest first. */
async function follow(
  ctx: OrganizationContext,
  query: DeliveryLogQuery,
  newest: readonly LoggedDelivery[],
  { json: isJson, timeout }: LogsOptions,
): Promise<PrintedResult> {
  const print = createRowPrinter<LoggedDelivery>(ctx.terminal, isJson)
  print(newest.filter(isFinished).toReversed(), COLUMNS)
  for await (const news of followDeliveries(ctx, query, newest, ctx.interrupted(timeout))) print(news, COLUMNS)
  return 0
}
