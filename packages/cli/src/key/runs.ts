import { setTimeout as sleep } from 'node:timers/promises'
import { UUID_PATTERN } from '@workflow-service/contract/enumerations'
import type { Delivery, Run, SessionRun } from '../../../client/src/index.ts'
import type { FollowOptions } from '../cli-command.ts'
import type { KeyContext } from '../cli-context.ts'
import { UsageError } from '../cli-error.ts'
import { type CommandResult, listResult, type PrintedResult } from '../command-result.ts'
import { DELIVERY_COLUMNS, DELIVERY_ID, runColumns, stateColour, tookOf } from '../run-columns.ts'
import { type Column, formatFacts, paint, renderTable, showClock, showTime, type Terminal } from '../terminal.ts'
import { findWorkflow, followStarted, startResult } from '../workflows.ts'

/** `wf start WORKFLOW TEXT` over the public API. */
export async function start(
  ctx: KeyContext,
  given: string,
  text: string,
  { session, ...options }: FollowOptions & { session?: string },
): Promise<CommandResult | PrintedResult> {
  const context = text === '-' ? await ctx.readInput() : text
  const sessionId = session === undefined ? undefined : wholeId(session)
  const { id: workflowId, name } = await findWorkflow(ctx.workflows, given)
  const started = await ctx.client.workflows.start(workflowId, { context, ...(sessionId && { sessionId }) })
  const accepted = startResult(started, name)
  return options.follow ? await followStarted(ctx, accepted, () => follow(ctx, started.id, options)) : accepted
}

/** `wf runs show ID` over the public API. */
export async function show(
  ctx: KeyContext,
  id: string,
  options: FollowOptions,
): Promise<CommandResult | PrintedResult> {
  if (options.follow) return await follow(ctx, wholeId(id), options)
  const run = await ctx.client.runs.get(wholeId(id))
  return { json: run, text: (terminal) => formatRun(terminal, run) }
}

const FIRST_POLL_MS = 250
const LAST_POLL_MS = 2_000

/** Prints the status of the run whenever it has changed, and the run at its end, until Ctrl-C or the time-out. */
async function follow(ctx: KeyContext, id: string, { timeout, json }: FollowOptions): Promise<PrintedResult> {
  const { terminal, client } = ctx
  const signal = ctx.interrupted(timeout)
  let status: string | undefined
  for (let pollMs = FIRST_POLL_MS; !signal.aborted; pollMs = Math.min(LAST_POLL_MS, pollMs * 1.5)) {
    const run = await client.runs.get(id, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
    if (!run) break
    if (run.status !== status) {
      terminal.write(json ? `${JSON.stringify(run)}\n` : formatProgress(terminal, run))
    }
    ;({ status } = run)
    if (run.finished_at !== null) break
    await sleep(pollMs, undefined, { signal }).catch(() => {})
  }
  return status === 'succeeded' ? 0 : 1
}

function formatProgress(terminal: Terminal, run: Run): string {
  if (run.finished_at !== null) return formatRun(terminal, run)
  const why = run.status === 'waiting' ? '; a person decides in the application whether it is sent' : ''
  return `${paint(terminal, 'dim', showClock(new Date()))}  run ${run.id} in session ${run.session_id}: ${run.status}${why}\n`
}

function formatRun(terminal: Terminal, run: Run): string {
  const { id, status, error, created_at: acceptedAt, finished_at: finishedAt } = run
  const took = finishedAt === null ? '' : ` after ${tookOf(run)}`
  const facts: [string, string][] = [
    ...(error ? [['error', `${error.code}: ${error.message}`] satisfies [string, string]] : []),
    ['workflow', run.workflow_id],
    ['session', `${run.session_id}, start number ${run.number}`],
    ['accepted', `${showTime(acceptedAt)} UTC`],
  ]
  const columns = [...DELIVERY_COLUMNS, DELIVERY_ID]
  const table = renderTable(terminal, columns, run.deliveries, 'The log has no delivery of it.')
  return `Run ${paint(terminal, 'bold', id)} ${paint(terminal, stateColour(status), status)}${took}\n${formatFacts(terminal, facts)}\n${table}`
}

/** `wf sessions show ID` over the public API. */
export async function showSession({ client }: KeyContext, given: string): Promise<CommandResult> {
  const session = await client.sessions.get(wholeId(given))
  const { id, is_open: isOpen, start_count: count, created_at: openedAt, closed_at: closedAt, runs } = session
  const state = isOpen ? `open since ${showTime(openedAt)} UTC` : `closed since ${showTime(closedAt)} UTC`
  return {
    json: session,
    text: (terminal) =>
      `Session ${paint(terminal, 'bold', id)} is ${state}, with ${count} starts.\n\n${formatRuns(terminal, runs)}`,
  }
}

interface ListOptions {
  readonly session?: string
  readonly run?: string
  readonly limit: number
}

/** `wf runs list --session ID` over the public API. */
export async function list({ client }: KeyContext, options: ListOptions): Promise<CommandResult> {
  refuseOthers(options, ['session'], 'the newest runs of a session')
  if (options.session === undefined) {
    throw new UsageError('With an API key, name the session: wf runs list --session ID. One run: wf runs show ID.')
  }
  const { runs } = await client.sessions.get(wholeId(options.session))
  const found = runs.slice(0, options.limit)
  return { json: found, text: (terminal) => formatRuns(terminal, found) }
}

function formatRuns(terminal: Terminal, runs: readonly SessionRun[]): string {
  const rows = runs.map((run) => ({ ...run, error: run.error && `${run.error.code}: ${run.error.message}` }))
  return renderTable(terminal, runColumns(new Map()), rows, 'It has no runs yet.')
}

/** `wf logs --run ID` and `--session ID` over the public API: the payloads that were sent, newest first. */
export async function logs(
  { client }: KeyContext,
  source: string | undefined,
  options: ListOptions,
): Promise<CommandResult> {
  refuseOthers(options, ['session', 'run'], 'the payloads of a run, or of the latest 20 runs of a session')
  const { run, session, limit } = options
  if (source !== undefined || (run ?? session) === undefined) {
    throw new UsageError('With an API key, name a run or a session: wf logs --run ID, wf logs --session ID.')
  }
  const ids =
    run === undefined ? (await client.sessions.get(wholeId(session!))).runs.map(({ id }) => id) : [wholeId(run)]
  const entries: (Delivery & { run_id: string })[] = []
  for (const id of ids) {
    const { deliveries } = await client.runs.get(id)
    entries.push(...deliveries.map((delivery) => ({ ...delivery, run_id: id })))
  }
  const newest = entries.toSorted((a, b) => b.created_at.localeCompare(a.created_at)).slice(0, limit)
  const columns: Column<(typeof entries)[number]>[] = [
    ...DELIVERY_COLUMNS,
    DELIVERY_ID,
    { title: 'RUN', value: (row) => row.run_id, cut: 'id' },
  ]
  return listResult(newest, columns, 'The log has no delivery.')
}

/** @throws UsageError if an option is given that the public API has nothing for. */
function refuseOthers(options: object, names: readonly string[], listed: string): void {
  const known = [...names, 'limit', 'json', 'organization']
  const other = Object.keys(options).find((name) => !known.includes(name))
  if (other !== undefined) {
    const advice = other === 'follow' ? 'follow a run: wf runs show ID --follow' : `leave it out: ${listed} are listed`
    throw new UsageError(`--${other} needs the database. With an API key, ${advice}.`)
  }
}

/** @throws UsageError */
function wholeId(id: string): string {
  if (!UUID_PATTERN.test(id)) throw new UsageError(`With an API key, give the whole id: ${id} is the beginning of one.`)
  return id
}
