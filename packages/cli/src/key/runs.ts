import { setTimeout as sleep } from 'node:timers/promises'
import { UUID_PATTERN } from '@workflow-service/contract/enumerations'
import type { Delivery, Run, SessionRun } from '../../../client/src/index.ts'
import type { FollowOptions } from '../cli-command.ts'
import type { KeyContext } from '../cli-context.ts'
import { UsageError } from '../cli-error.ts'
import { type CommandResult, listResult, printedResult } from '../command-result.ts'
import { DELIVERY_COLUMNS, DELIVERY_ID, outcomeColour, runColumns, statusColour, tookOf } from '../run-columns.ts'
import {
  type Column,
  formatFacts,
  type Format,
  paint,
  renderTable,
  showClock,
  showTime,
  type Terminal,
  withoutControls,
} from '../terminal.ts'
import { findWorkflow } from '../workflows.ts'
import { workflowsOf } from './workflows.ts'

/** `wf start WORKFLOW TEXT` over the public API. */
export async function start(
  ctx: KeyContext,
  given: string,
  text: string,
  { session, ...options }: FollowOptions & { session?: string },
): Promise<CommandResult> {
  const context = text === '-' ? await ctx.readInput() : text
  const sessionId = session === undefined ? undefined : wholeId(session)
  const { id: workflowId, name } = await findWorkflow(workflowsOf(ctx), given)
  const started = await ctx.client.workflows.start(workflowId, { context, ...(sessionId && { sessionId }) })
  if (options.follow) return await follow(ctx, started.id, options)
  const { id, session_id: of } = started
  const next = `See how it goes: wf runs show ${id} --follow`
  return { json: started, text: () => `Run ${id} of ${name} is accepted, in session ${of}. ${next}\n` }
}

/** `wf runs show ID` over the public API. */
export async function show(ctx: KeyContext, id: string, options: FollowOptions): Promise<CommandResult> {
  if (options.follow) return await follow(ctx, wholeId(id), options)
  const run = await ctx.client.runs.get(wholeId(id))
  return { json: run, text: (terminal) => formatRun(terminal, run) }
}

const FIRST_POLL_MS = 250
const LAST_POLL_MS = 2_000

/** Prints the run whenever its status or a delivery has changed, until its end, Ctrl-C or the time-out. */
async function follow(ctx: KeyContext, id: string, { timeout, json }: FollowOptions): Promise<CommandResult> {
  const { terminal, client } = ctx
  const signal = ctx.interrupted(timeout)
  let before: Run | undefined
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(LAST_POLL_MS, pollMs * 1.5)) {
    const run = await client.runs.get(id, { signal }).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
    if (!run) break
    if (JSON.stringify(run) !== JSON.stringify(before)) {
      terminal.write(json ? `${JSON.stringify(run)}\n` : formatNews(terminal, run, before))
    }
    before = run
    if (run.finished_at !== null) break
    await sleep(pollMs, undefined, { signal }).catch(() => {})
    if (signal.aborted) break
  }
  return printedResult(before?.status === 'succeeded')
}

/** One line for each change since `before`. */
function formatNews(terminal: Terminal, run: Run, before: Run | undefined): string {
  const line = (text: string, colour?: Format) => {
    const shown = withoutControls(text)
    return `${paint(terminal, 'dim', showClock(new Date()))}  ${colour ? paint(terminal, colour, shown) : shown}\n`
  }
  const lines = before ? [] : [line(`run ${run.id} in session ${run.session_id}`)]
  if (run.status === 'running' && before?.status !== 'running') lines.push(line(run.status))
  for (const { id, source_name: source, outcome, status } of run.deliveries) {
    if (before?.deliveries.find((each) => each.id === id)?.outcome === outcome) continue
    lines.push(line(`${source}: ${outcome}${status === null ? '' : ` with status ${status}`}`, outcomeColour(outcome)))
  }
  if (run.status !== before?.status && run.status !== 'running') {
    lines.push(
      line(`${run.status}${run.error ? ` (${run.error.code}): ${run.error.message}` : ''}`, statusColour(run.status)),
    )
    if (run.status === 'waiting') lines.push(line('A person decides in the application whether it is sent.'))
  }
  return lines.join('')
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
  const table = renderTable(terminal, columns, run.deliveries, 'Nothing was sent.')
  return `Run ${paint(terminal, 'bold', id)} ${paint(terminal, statusColour(status), status)}${took}\n${formatFacts(terminal, facts)}\n${table}`
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
  readonly status?: string
  readonly workflow?: string
  readonly outcome?: string
  readonly since?: Date
  readonly until?: Date
  readonly limit: number
}

/** `wf runs list --session ID` over the public API. */
export async function list(ctx: KeyContext, options: ListOptions & { follow?: boolean }): Promise<CommandResult> {
  refuse(options, 'follow')
  if (options.session === undefined) {
    throw new UsageError('With an API key, name the session: wf runs list --session ID. One run: wf runs show ID.')
  }
  const workflowId =
    options.workflow === undefined ? undefined : (await findWorkflow(workflowsOf(ctx), options.workflow)).id
  const { runs } = await ctx.client.sessions.get(wholeId(options.session))
  const found = runs
    .filter(({ status }) => options.status === undefined || status === options.status)
    .filter((run) => workflowId === undefined || run.workflow_id === workflowId)
    .filter((run) => isInPeriod(run, options))
    .slice(0, options.limit)
  return { json: found, text: (terminal) => formatRuns(terminal, found) }
}

function formatRuns(terminal: Terminal, runs: readonly SessionRun[]): string {
  const rows = runs.map((run) => ({ ...run, error: run.error && `${run.error.code}: ${run.error.message}` }))
  return renderTable(terminal, runColumns(new Map()), rows, 'No runs match.')
}

/** `wf logs --run ID` and `--session ID` over the public API: the payloads that were sent, newest first. */
export async function logs(
  ctx: KeyContext,
  source: string | undefined,
  options: ListOptions & { follow?: boolean; kind?: string },
): Promise<CommandResult> {
  refuse(options, 'follow', 'kind')
  const entries: Entry[] = []
  for (const id of await findRunIds(ctx, options)) entries.push(...toEntries(await ctx.client.runs.get(id)))
  const wanted = source?.toLowerCase()
  const found = entries
    .filter(({ source_name: name, source_id: id }) => [undefined, name.toLowerCase(), id].includes(wanted))
    .filter(({ outcome }) => options.outcome === undefined || outcome === options.outcome)
    .filter((entry) => isInPeriod(entry, options))
    .toSorted((a, b) => b.created_at.localeCompare(a.created_at))
    .slice(0, options.limit)
  const columns: Column<Entry>[] = [
    ...DELIVERY_COLUMNS,
    DELIVERY_ID,
    { title: 'RUN', value: (row) => row.run_id, cut: 'id' },
  ]
  return listResult(found, columns, 'Nothing was sent that matches.')
}

async function findRunIds({ client }: KeyContext, { run, session }: ListOptions): Promise<string[]> {
  if (run !== undefined) return [wholeId(run)]
  if (session !== undefined) return (await client.sessions.get(wholeId(session))).runs.map(({ id }) => id)
  throw new UsageError('With an API key, name a run or a session: wf logs --run ID, wf logs --session ID.')
}

type Entry = Delivery & { readonly run_id: string }

function toEntries({ id, deliveries }: Run): Entry[] {
  return deliveries.map((delivery) => ({ ...delivery, run_id: id }))
}

function isInPeriod(row: { readonly created_at: string }, { since, until }: ListOptions): boolean {
  const at = new Date(row.created_at)
  return (since === undefined || at >= since) && (until === undefined || at < until)
}

/** @throws UsageError if one of the options is given that the public API has nothing for. */
function refuse<Name extends string>(options: Partial<Record<Name, unknown>>, ...names: Name[]): void {
  const name = names.find((each) => options[each] !== undefined)
  if (name !== undefined) {
    throw new UsageError(`--${name} needs the database. With an API key, follow a run: wf runs show ID --follow.`)
  }
}

/** @throws UsageError */
function wholeId(id: string): string {
  if (!UUID_PATTERN.test(id)) throw new UsageError(`With an API key, give the whole id: ${id} is the beginning of one.`)
  return id
}
