import { setTimeout as sleep } from 'node:timers/promises'
import type { RunStatus } from '@workflow-service/contract'
import { findWorkflowNames, listRuns, type RunFilter, type RunRow } from '@workflow-service/database'
import type { FollowOptions } from '../cli-command.ts'
import type { OrganizationContext } from '../cli-context.ts'
import { statusColour, tookOf } from '../run-columns.ts'
import { paint, showTime, withoutControls } from '../terminal.ts'

const POLL_MS = 1_000
/** How far each poll reads back before the newest run, because transactions commit out of order. */
const OVERLAP_MS = 5_000
/** Runs that one statement reads. */
const MAX_RUNS = 1_000
/** Of the columns that `toLine` prints: runs come one by one, so their widths are fixed. */
const HEADINGS = `${'ACCEPTED (UTC)'.padEnd(19)}  ${'STATUS'.padEnd(9)}  ${'TOOK'.padStart(8)}  ${'RUN'.padEnd(36)}  WORKFLOW: ERROR`
const UNFINISHED: readonly RunStatus[] = ['queued', 'running', 'waiting']

/**
 * Prints the newest runs, oldest first, and then, every second until Ctrl-C, each new run and each run whose status has
 * changed. With a filter for the status, a run is printed when it gets that status.
 */
export async function followRuns(
  ctx: OrganizationContext,
  filter: RunFilter,
  newest: readonly RunRow[],
  { json: isJson, timeout }: FollowOptions,
): Promise<undefined> {
  const { db, organization } = ctx
  const signal = ctx.interrupted(timeout)
  const { status: wanted, limit: _limit, ...unfiltered } = filter
  const names = new Map<string, string>()
  /** The last status of each run that has not ended, or that the next poll may read again. */
  const seen = new Map<string, RunRow>()
  const read = async (more: Partial<RunFilter>) =>
    await listRuns(db, organization.id, { ...unfiltered, ...more, limit: MAX_RUNS })
  const readSince = async (timeMs: number) =>
    await read({ since: new Date(Math.max(timeMs, filter.since?.getTime() ?? 0)) })
  const print = async (runs: readonly RunRow[]) => {
    const unnamed = runs.map((row) => row.workflow_id).filter((id) => !names.has(id))
    if (unnamed.length > 0) {
      for (const [id, name] of await findWorkflowNames(db, organization.id, unnamed)) names.set(id, name)
    }
    ctx.terminal.write(runs.map((row) => (isJson ? `${JSON.stringify(row)}\n` : toLine(row))).join(''))
  }
  let newestMs = newest[0]?.created_at.getTime() ?? Date.now()
  const unfinished = await Promise.all(UNFINISHED.map(async (status) => await read({ status })))
  for (const row of [...unfinished.flat(), ...(await readSince(newestMs - OVERLAP_MS)), ...newest])
    seen.set(row.id, row)
  if (!isJson) ctx.terminal.write(`${paint(ctx.terminal, 'dim', HEADINGS)}\n`)
  await print(newest.toReversed())
  while (!signal.aborted) {
    await sleep(POLL_MS, undefined, { signal }).catch(() => {})
    const recent = await readSince(newestMs - OVERLAP_MS)
    const ids = [...seen.values()].filter((row) => row.finished_at === null).map(({ id }) => id)
    const watched = ids.length === 0 ? [] : await listRuns(db, organization.id, { ids, limit: ids.length })
    const rows = [...new Map([...watched, ...recent].map((row) => [row.id, row])).values()]
    const changed = rows.filter(({ id, status }) => seen.get(id)?.status !== status)
    newestMs = Math.max(newestMs, ...recent.map((row) => row.created_at.getTime()))
    for (const row of changed) seen.set(row.id, row)
    for (const { id, finished_at: end, created_at: at } of seen.values()) {
      if (end !== null && at.getTime() < newestMs - OVERLAP_MS) seen.delete(id)
    }
    const matching = changed.filter(({ status }) => wanted === undefined || status === wanted)
    await print(matching.toSorted((a, b) => a.created_at.getTime() - b.created_at.getTime()))
  }

  function toLine(row: RunRow): string {
    const { created_at: createdAt, status, error } = row
    const columns = [
      paint(ctx.terminal, 'dim', showTime(createdAt)),
      paint(ctx.terminal, statusColour(status), status.padEnd(9)),
      tookOf(row).padStart(8),
      row.id,
      withoutControls([names.get(row.workflow_id) ?? row.workflow_id, error].filter(Boolean).join(': ')),
    ]
    return `${columns.join('  ').trimEnd()}\n`
  }
}
