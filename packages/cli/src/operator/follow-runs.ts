import { setTimeout as sleep } from 'node:timers/promises'
import type { RunStatus } from '@workflow-service/contract'
import {
  findWorkflowNames,
  listRuns,
  readClock,
  type RunDetails,
  type RunFilter,
  type RunRow,
  showRun,
} from '@workflow-service/database'
import type { FollowOptions } from '../cli-command.ts'
import { CliError } from '../cli-error.ts'
import { createRowPrinter, type PrintedResult } from '../command-result.ts'
import type { OperatorContext, OrganizationContext } from '../cli-context.ts'
import { formatDeliveries, formatEvents, formatHead, timelineOf } from './format-run.ts'
import { runColumns } from '../run-columns.ts'
import { paint, type Terminal } from '../terminal.ts'

/** Between two reads of a run. */
const STEP_POLL_MS = 300
/** Between two reads of the list of runs. */
const POLL_MS = 1_000
/** How far each poll reads back before the newest run, because transactions commit out of order. */
const OVERLAP_MS = 5_000
/** Runs that one statement reads. */
const MAX_RUNS = 1_000
const UNFINISHED: readonly RunStatus[] = ['queued', 'running', 'waiting']

/**
 * Prints the newest runs, oldest first, and then, every second until Ctrl-C, each new run and each run whose status has
 * changed. With a filter for the status, a run is printed when it gets that status.
 */
export async function followRuns(
  ctx: OrganizationContext,
  filter: RunFilter,
  readNewest: () => Promise<readonly RunRow[]>,
  { json: isJson, timeout }: FollowOptions,
): Promise<PrintedResult> {
  const { db, organization } = ctx
  const signal = ctx.interrupted(timeout)
  const { status: wanted, limit: _limit, ...unfiltered } = filter
  const read = async (more: Partial<RunFilter>) =>
    await listRuns(db, organization.id, { ...unfiltered, ...more, limit: MAX_RUNS })
  const readSince = async (timeMs: number) =>
    await read({ since: new Date(Math.max(timeMs, filter.since?.getTime() ?? 0)) })
  const printRows = createRowPrinter<RunRow>(ctx.terminal, isJson)
  const print = async (runs: readonly RunRow[]) => {
    if (runs.length === 0) return
    const ids = runs.map((row) => row.workflow_id)
    printRows(runs, isJson ? [] : runColumns(await findWorkflowNames(db, organization.id, ids)))
  }
  let newestMs = (await readClock(db.pool)).getTime()
  const unfinished = await Promise.all(UNFINISHED.map(async (status) => await read({ status })))
  const known = await readSince(newestMs - OVERLAP_MS)
  // After what is known, so that a run that comes or changes meanwhile is printed here or by the first poll.
  const newest = await readNewest()
  /** What the last poll read: each run that had not ended, or that the next one may read again. */
  let seen = byId([...unfinished.flat(), ...known, ...newest])
  await print(newest.toReversed())
  while (!signal.aborted) {
    await sleep(POLL_MS, undefined, { signal }).catch(() => {})
    const recent = await readSince(newestMs - OVERLAP_MS)
    const ids = [...seen.values()].filter((row) => row.finished_at === null).map(({ id }) => id)
    const watched = ids.length === 0 ? [] : await listRuns(db, organization.id, { ids, limit: ids.length })
    const before = seen
    seen = byId([...watched, ...recent])
    const changed = [...seen.values()].filter(({ id, status }) => before.get(id)?.status !== status)
    newestMs = Math.max(newestMs, ...recent.map((row) => row.created_at.getTime()))
    const matching = changed.filter(({ status }) => wanted === undefined || status === wanted)
    await print(matching.toSorted((a, b) => a.created_at.getTime() - b.created_at.getTime()))
  }
  return 0
}

function byId(runs: readonly RunRow[]): Map<string, RunRow> {
  return new Map(runs.map((row) => [row.id, row]))
}

/**
 * Prints a run as it goes, until its end or Ctrl-C: its facts, each event once, and its deliveries; with JSON, one
 * object a line: the run whenever its status changes, and each step of its journal. The exit status is 1 if the run
 * did not succeed.
 */
export async function followRun(
  ctx: OperatorContext,
  first: RunDetails,
  { json, timeout }: FollowOptions,
): Promise<PrintedResult> {
  const { terminal } = ctx
  const signal = ctx.interrupted(timeout)
  const print = json ? createJsonPrinter(terminal) : createTextPrinter(terminal, first)
  let run = first
  for (;;) {
    print(run)
    if (run.finished_at || signal.aborted) break
    await sleep(STEP_POLL_MS, undefined, { signal }).catch(() => {})
    const next = await showRun(ctx.db, run.id)
    if (!next) throw new CliError(`Run ${run.id} was deleted.`)
    run = next
  }
  return run.status === 'succeeded' ? 0 : 1
}

function createTextPrinter(terminal: Terminal, first: RunDetails): (run: RunDetails) => void {
  terminal.write(formatHead(terminal, first))
  let printed = 0
  let isWaiting = false
  return (run) => {
    terminal.write(formatEvents(terminal, run, printed))
    printed = timelineOf(run).length
    if (run.status === 'waiting' && !isWaiting) {
      const advice = `Approve it with wf runs approve ${run.id}, or decline it with wf runs decline ${run.id}.`
      terminal.write(`${paint(terminal, 'yellow', advice)}\n`)
    }
    isWaiting = run.status === 'waiting'
    if (run.finished_at) terminal.write(formatDeliveries(terminal, run))
  }
}

function createJsonPrinter(terminal: Terminal): (run: RunDetails) => void {
  let status: string | undefined
  let printed = 0
  const write = (line: object) => terminal.write(`${JSON.stringify(line)}\n`)
  return ({ steps, deliveries: _deliveries, approvals: _approvals, ...run }) => {
    for (const { position, kind, data, createdAt } of steps.slice(printed)) {
      write({ run_id: run.id, position, kind, data, created_at: createdAt })
    }
    printed = steps.length
    if (run.status !== status) write(run)
    status = run.status
  }
}
