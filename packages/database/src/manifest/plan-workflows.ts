import type { AutoRunFrequency, ScheduleTiming } from '@workflow-service/contract'
import { deriveId, workflowSearchText } from '../connection/index.ts'
import { OPERATOR } from '../organizations/index.ts'
import { recordVersions, scheduleAutoRun } from '../workflows/index.ts'
import {
  absentFields,
  type ApplyContext,
  changesBetween,
  FOREIGN_ID,
  inListOrder,
  lowerCaseId,
  type Plan,
  type PlannedThing,
  reportRepeatedIds,
  toThing,
  toTime,
} from './apply-context.ts'
import { planAccess, planFiles, planTriggers, type Wanted } from './plan-workflow-parts.ts'
import { writePlanned } from './write-rows.ts'

/** A workflow of a manifest with the ids of its triggers and files. */
export interface AppliedWorkflow extends PlannedThing {
  readonly triggers: readonly { id: string; name: string }[]
  readonly files: readonly { id: string; path: string[]; name: string }[]
}

/** The fields of rows are named like the columns, because `writePlanned` passes the rows to PostgreSQL as JSON. */
interface WorkflowRow {
  id: string
  organization_id: string
  name: string
  description: string
  scope: string
  search_text: string
  is_active: boolean
  auto_run_enabled: boolean | null
  auto_run_frequency: AutoRunFrequency | null
  auto_run_anchor_at: Date | null
  auto_run_next_at: Date | null
  auto_run_timing: ScheduleTiming | null
  model: string | null
  /** In millionths, as PostgreSQL's driver gives a bigint. */
  run_budget: string | null
  day_budget: string | null
  when_spent: string
  created_at: Date
  updated_at: Date
  /** Set while the runs of a deleted workflow are deleted. Applying a manifest that names it undoes the deletion. */
  deleted_at: Date | null
}

/**
 * Plans the workflows, identified by their ids. The users, triggers and files of each become exactly those of the
 * manifest.
 */
export async function planWorkflows(
  ctx: ApplyContext,
  plannedUsers: readonly { readonly id: string; readonly email: string }[],
  sourceIdByName: ReadonlyMap<string, string>,
): Promise<Plan<AppliedWorkflow>> {
  const wanted = (ctx.manifest.workflows ?? []).map((entry, index) => ({
    id: lowerCaseId(entry.id) ?? deriveId('workflow', ctx.organizationId, entry.name),
    path: `workflows[${index}]`,
    entry,
  }))
  reportRepeatedIds(ctx, wanted)
  const stored = await readWorkflows(ctx, wanted)
  const users = await planAccess(ctx, wanted, plannedUsers)
  const triggers = await planTriggers(ctx, wanted, sourceIdByName)
  const files = await planFiles(ctx, wanted)
  const parts = [users, triggers, files]
  const partsOf = Map.groupBy(
    parts.flatMap(({ changes }) => changes),
    workflowIdOf,
  )
  const planned = wanted.map((workflow, index) => {
    const { id, entry } = workflow
    const before = stored.get(id)
    const row = toRow(ctx, workflow, before, wanted.length - 1 - index)
    const changes = before && [
      ...changesBetween(workflowValues(before), workflowValues(row)),
      ...(partsOf.get(id) ?? []).map(({ change }) => change),
    ]
    const keepsTiming = entry.auto_run?.frequency === before?.auto_run_frequency
    const kept = entry.auto_run && keepsTiming ? absentFields(entry.auto_run, 'timing') : []
    const thing = toThing({ kind: 'workflow', id, name: entry.name, kept }, changes)
    const isTouched = thing.outcome === 'changed' && entry.updated_at === undefined
    return { thing, row: isTouched ? { ...row, updated_at: ctx.now } : row }
  })
  const things = planned.map(({ thing }) => thing)
  const triggersOf = Map.groupBy(triggers.wanted, workflowIdOf)
  const filesOf = Map.groupBy(files.wanted, workflowIdOf)
  return {
    things: things.map((thing) => ({
      ...thing,
      triggers: (triggersOf.get(thing.id) ?? []).map(({ id, name }) => ({ id, name })),
      files: (filesOf.get(thing.id) ?? []).map(({ id, path, name }) => ({ id, path, name })),
    })),
    write: async () => {
      const written = things.filter(({ outcome }) => outcome !== 'unchanged').map(({ id }) => id)
      await recordVersions(ctx.client, written, null)
      // Also a workflow of which only users, triggers or files changed: the version is that of the whole document.
      await writePlanned(ctx.client, 'workflows', planned, ['version = gen_random_uuid()'])
      for (const part of parts) await part.write()
      await recordVersions(ctx.client, written, OPERATOR.name)
    },
  }
}

function workflowIdOf(of: { readonly workflow_id: string }): string {
  return of.workflow_id
}

async function readWorkflows(ctx: ApplyContext, wanted: readonly Wanted[]): Promise<Map<string, WorkflowRow>> {
  const found = await ctx.client.query<WorkflowRow>(
    `SELECT id, organization_id, name, description, scope, search_text, is_active, auto_run_enabled, auto_run_frequency,
       auto_run_anchor_at, auto_run_next_at, auto_run_timing, model, run_budget, day_budget, when_spent, created_at, updated_at,
       deleted_at
     FROM workflows WHERE id = ANY ($1::uuid[]) ORDER BY id FOR UPDATE`,
    [wanted.map(({ id }) => id)],
  )
  const stored = new Map(found.rows.map((row) => [row.id, row]))
  for (const { id, path } of wanted) {
    const row = stored.get(id)
    if (row && row.organization_id !== ctx.organizationId) ctx.report(`${path}.id`, FOREIGN_ID)
  }
  return stored
}

function toRow(
  ctx: ApplyContext,
  { id, entry }: Wanted,
  stored: WorkflowRow | undefined,
  createdBefore: number,
): WorkflowRow {
  const { name, description = '', scope = 'company_wide', is_active = true } = entry
  const enabled = entry.auto_run?.enabled ?? null
  const frequency = entry.auto_run?.frequency ?? null
  // A manifest without a timing keeps that of a schedule whose frequency it keeps.
  const kept = stored?.auto_run_frequency === frequency ? stored.auto_run_timing : null
  const { timing = kept } = entry.auto_run ?? {}
  const storedSchedule = stored && {
    enabled: stored.auto_run_enabled,
    frequency: stored.auto_run_frequency,
    anchorAt: stored.auto_run_anchor_at,
    nextAt: stored.auto_run_next_at,
    timing: stored.auto_run_timing,
  }
  const { anchorAt, nextAt } = scheduleAutoRun({ enabled, frequency, timing }, storedSchedule ?? null, ctx.now)
  return {
    id,
    organization_id: ctx.organizationId,
    name,
    description,
    scope,
    search_text: workflowSearchText(name, description),
    is_active,
    auto_run_enabled: enabled,
    auto_run_frequency: frequency,
    auto_run_anchor_at: anchorAt,
    auto_run_next_at: nextAt,
    auto_run_timing: timing,
    model: entry.model ?? null,
    run_budget: toMicros(entry.run_budget),
    day_budget: toMicros(entry.day_budget),
    when_spent: entry.when_spent ?? 'fail',
    created_at: toTime(entry.created_at) ?? stored?.created_at ?? inListOrder(ctx.now, createdBefore),
    updated_at: toTime(entry.updated_at) ?? stored?.updated_at ?? ctx.now,
    deleted_at: null,
  }
}

function workflowValues(row: WorkflowRow): Record<string, unknown> {
  const { auto_run_timing: timing } = row
  return {
    name: row.name,
    description: row.description,
    scope: row.scope,
    is_active: row.is_active,
    'auto_run.enabled': row.auto_run_enabled,
    'auto_run.frequency': row.auto_run_frequency,
    'auto_run.timing': timing && { time: timing.time, day: timing.day, time_zone: timing.time_zone },
    model: row.model,
    run_budget: toMoney(row.run_budget),
    day_budget: toMoney(row.day_budget),
    when_spent: row.when_spent,
    created_at: row.created_at,
    updated_at: row.updated_at,
    deleted: row.deleted_at !== null,
  }
}

export function toMicros(money: number | null | undefined): string | null {
  return money === null || money === undefined ? null : String(Math.round(money * 1_000_000))
}

/** Millionths as an amount of the currency. */
export function toMoney(micros: string | null): number | null {
  return micros === null ? null : Number(micros) / 1_000_000
}
