import { DELIVERY_KINDS, DELIVERY_OUTCOMES, type DeliveryKind, type DeliveryOutcome } from '@workflow-service/contract'
import { type Delivery, type DeliveryQuery, listDeliveries, readRejectedAnswers } from '@workflow-service/database'
import { argument, command, type CommandResult, option, ORGANIZATION, toSnakeCase } from '../cli-command.ts'
import type { CliContext } from '../cli-context.ts'
import { findOrganization, findSource } from '../find.ts'
import { followDeliveries, isFinished } from '../follow-deliveries.ts'
import { checkPeriod, parseLimit, parseTime } from '../parse-options.ts'
import {
  type Column,
  type Format,
  paint,
  renderTable,
  showDuration,
  showTime,
  type Terminal,
  withoutControls,
} from '../terminal.ts'

interface LogsOptions {
  organization?: string
  follow?: boolean
  outcome?: DeliveryOutcome
  kind?: DeliveryKind
  since?: Date
  until?: Date
  limit: number
  answers?: boolean
  json?: boolean
}

/** `wf logs SOURCE` */
export const logsCommand = command(
  'logs',
  'Show the requests sent to a webhook source and their outcomes, newest first.',
  logs,
  [
    ORGANIZATION,
    argument('<source>', 'its name or id; for a deleted source, its id'),
    option('-f, --follow', 'keep printing new entries until Ctrl-C; with --json, one object per line'),
    option(
      '--answers',
      'below the table: what the endpoint answered to each request that it rejected, at most 4 KiB; always in --json',
    ).conflicts('follow'),
    option('--outcome <outcome>', 'only entries with this outcome').choices(DELIVERY_OUTCOMES),
    option('--kind <kind>', 'only entries of this kind').choices(DELIVERY_KINDS),
    option('--since <time>', 'from this time on: 2026-01-31T09:00:00Z, or a duration ago: 15m, 2h, 7d', parseTime),
    option('--until <time>', 'before this time', parseTime).conflicts('follow'),
    option('--limit <n>', 'maximum number of entries', parseLimit, 25),
  ],
)

async function logs(ctx: CliContext, text: string, options: LogsOptions): Promise<CommandResult | undefined> {
  checkPeriod(options)
  const organization = await findOrganization(ctx, options.organization)
  const source = await findSource(ctx, organization, text, { includeDeleted: true })
  const { outcome, kind, since, until, limit } = options
  const query: DeliveryQuery = { sourceId: source.id, outcome, kind, since, until, limit }
  const hasFilter = [outcome, kind, since, until].some((value) => value !== undefined)
  const newest = await listDeliveries(ctx.database(), organization.id, query)
  if (options.follow) {
    await follow(ctx, organization.id, query, newest, options.json ?? false)
    return undefined
  }
  const ids = newest.filter((delivery) => delivery.outcome === 'rejected').map(({ id }) => id)
  const answers = await readRejectedAnswers(ctx.database(), organization.id, ids)
  return {
    json: newest.map((delivery) => ({ ...toJson(delivery), rejected_answer: answers.get(delivery.id) ?? null })),
    text: (terminal) =>
      [
        renderTable(
          terminal,
          COLUMNS,
          newest,
          `Nothing was sent to ${source.name}${hasFilter ? ' that matches the options' : ' yet'}.`,
        ),
        ...(options.answers ? newest.map((delivery) => formatAnswer(terminal, delivery, answers)) : []),
      ].join(''),
  }
}

/** The text of a rejection below a headline, each line indented; empty if there is none. */
function formatAnswer(
  terminal: Terminal,
  { id, createdAt, status }: Delivery,
  answers: ReadonlyMap<string, string>,
): string {
  const text = answers.get(id)
  if (text === undefined) return ''
  const lines = text.trimEnd().split('\n')
  const headline = paint(terminal, 'bold', `${showTime(createdAt)}  answered ${status}`)
  return `\n${headline}\n${lines.map((line) => `  ${withoutControls(line)}\n`).join('')}`
}

const OUTCOME_COLOURS: Record<DeliveryOutcome, Format> = {
  accepted: 'green',
  rejected: 'red',
  timed_out: 'red',
  unreachable: 'red',
  refused: 'red',
  invalid: 'yellow',
  unknown: 'magenta',
  in_flight: 'cyan',
}

const COLUMNS: readonly Column<Delivery>[] = [
  { title: 'TIME (UTC)', time: ({ createdAt }) => createdAt },
  { title: 'KIND', value: ({ kind }) => kind, shortValue: ({ kind }) => (kind === 'verification' ? 'verify' : kind) },
  { title: 'OUTCOME', value: ({ outcome }) => outcome, colour: ({ outcome }) => OUTCOME_COLOURS[outcome] },
  { title: 'STATUS', value: ({ status }) => (status === null ? '–' : String(status)) },
  { title: 'TOOK', value: ({ durationMs }) => showDuration(durationMs) },
  { title: 'RUN', value: ({ runId }) => runId ?? '–', cut: 'id' },
  { title: 'REASON OR ANSWER', value: describeDelivery },
]

/** Returns the reason of a failure, or the endpoint's answer. */
function describeDelivery({ reason, answer }: Pick<Delivery, 'reason' | 'answer'>): string {
  return reason ?? (answer === null ? '' : JSON.stringify(answer))
}

/** Prints the newest entries and then, every second until Ctrl-C, those that finished since, oldest first. */
async function follow(
  ctx: CliContext,
  organizationId: string,
  query: DeliveryQuery,
  newest: readonly Delivery[],
  isJson: boolean,
): Promise<void> {
  ctx.terminal.write(newest.filter(isFinished).toReversed().map(toLine).join(''))
  for await (const news of followDeliveries(ctx, organizationId, query, newest, ctx.interrupted())) {
    ctx.terminal.write(news.map(toLine).join(''))
  }

  function toLine(delivery: Delivery): string {
    if (isJson) return `${JSON.stringify(toJson(delivery))}\n`
    const { createdAt, kind, outcome, status, durationMs } = delivery
    const columns = [
      paint(ctx.terminal, 'dim', showTime(createdAt)),
      kind.padEnd(12),
      paint(ctx.terminal, OUTCOME_COLOURS[outcome], outcome.padEnd(11)),
      (status === null ? '–' : String(status)).padEnd(3),
      showDuration(durationMs).padStart(8),
      withoutControls(describeDelivery(delivery)),
    ]
    return `${columns.join('  ').trimEnd()}\n`
  }
}

function toJson(delivery: Delivery): object {
  return toSnakeCase(delivery, [
    'id',
    'sourceId',
    'kind',
    'outcome',
    'status',
    'reason',
    'mismatches',
    'durationMs',
    'answer',
    'requestBody',
    'sessionId',
    'runId',
    'requestId',
    'createdAt',
    'finishedAt',
  ])
}
