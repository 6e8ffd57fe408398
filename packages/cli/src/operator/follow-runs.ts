import { setTimeout as sleep } from 'node:timers/promises'
import type { RunStatus } from '@workflow-service/contract'
import { findWorkflowNames, listRuns, type RunFilter, type RunRow } from '@workflow-service/database'
import type { FollowOptions } from '../cli-command.ts'
import type { OrganizationContext } from '../cli-context.ts'
import { runColumns } from '../run-columns.ts'
import { renderTable } from '../terminal.ts'

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
  newest: readonly RunRow[],
  { json: isJson, timeout }: FollowOptions,
): Promise<undefined> {
  const { db, organization } = ctx
  const signal = ctx.interrupted(timeout)
  const { status: wanted, limit: _limit, ...unfiltered } = filter
  /** The last status of each run that has not ended, or that the next poll may read again. */
  const seen = new Map<string, RunRow>()
  const read = async (more: Partial<RunFilter>) =>
    await listRuns(db, organization.id, { ...unfiltered, ...more, limit: MAX_RUNS })
  const readSince = async (timeMs: number) =>
    await read({ since: new Date(Math.max(timeMs, filter.since?.getTime() ?? 0)) })
  let hasTitles = true
  const print = async (runs: readonly RunRow[]) => {
    if (runs.length === 0) return
    if (isJson) return ctx.terminal.write(runs.map((row) => `${JSON.stringify(row)}\n`).join(''))
    const ids = runs.map((row) => row.workflow_id)
    const columns = runColumns(await findWorkflowNames(db, organization.id, ids))
    ctx.terminal.write(renderTable(ctx.terminal, columns, runs, '', { hasTitles }))
    hasTitles = false
  }
  let newestMs = newest[0]?.created_at.getTime() ?? Date.now()
  const unfinished = await Promise.all(UNFINISHED.map(async (status) => await read({ status })))
  for (const row of [...unfinished.flat(), ...(await readSince(newestMs - OVERLAP_MS)), ...newest])
    seen.set(row.id, row)
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
}
