import type { AutoRunFrequency, ScheduleTiming, WorkflowDetailOut } from '@workflow-service/contract'
import { column, type Connection, runStatement, sql, statement, versionOf } from '../connection/index.ts'
import { isVisible, type Viewer } from '../organizations/index.ts'
import { nextAutoRunAt } from './auto-run-schedule.ts'

type TriggerOut = WorkflowDetailOut['triggers'][number]
export type TriggerValues = Omit<TriggerOut, 'id' | 'version'>
type Unversioned<Item> = Omit<Item, 'version'>

interface ScheduleRow {
  readonly enabled: boolean | null
  readonly frequency: AutoRunFrequency | null
  readonly timing: ScheduleTiming | null
  readonly anchor_at: string | null
  readonly next_at: string | null
}

interface DetailRow extends Omit<WorkflowDetailOut, 'agent' | 'auto_run' | 'triggers' | 'version' | 'users_version'> {
  readonly schedule: ScheduleRow
  readonly agent: Unversioned<WorkflowDetailOut['agent']>
  readonly triggers: Unversioned<TriggerOut>[]
}

/** SQL for the triggers of a row of `workflows` as JSON. */
export const triggersOf = (workflow: string) => sql('workflows/triggers-of-workflow', { WORKFLOW: workflow })

const READ_DETAIL = statement(
  'workflows/read-workflow-detail',
  { document: column.json<DetailRow>() },
  { IS_VISIBLE: isVisible('workflow', '$3'), TRIGGERS: triggersOf('workflow') },
)

/** Reads a workflow as the editor shows it; undefined when the person cannot see it. */
export async function readWorkflowDetail(
  db: Connection,
  { organizationId, memberId }: Viewer,
  workflowId: string,
): Promise<WorkflowDetailOut | undefined> {
  const { rows } = await runStatement(db, READ_DETAIL, [organizationId, workflowId, memberId])
  if (!rows[0]) return undefined
  const { schedule, triggers, ...rest } = rows[0].document
  const { enabled, frequency, timing } = schedule
  return {
    ...rest,
    auto_run: { enabled, frequency, timing, next_at: nextTimes(schedule), version: scheduleVersion(schedule) },
    agent: { ...rest.agent, version: agentVersion(rest.agent) },
    users_version: usersVersion(rest.users.map(({ id }) => id)),
    triggers: triggers.map(({ id, ...values }) => ({ id, ...values, version: triggerVersion(values) })),
    version: versionOf([rest.name, rest.description, rest.scope]),
  }
}

/** Identifies the values of a schedule that one save replaces. */
export function scheduleVersion(schedule: Pick<ScheduleRow, 'enabled' | 'frequency' | 'timing'>): string {
  const { enabled, frequency, timing } = schedule
  return versionOf([enabled, frequency, ...(timing ? [timing.time, timing.day, timing.time_zone] : [])])
}

const TIMES_SHOWN = 5

function nextTimes({ frequency, timing, anchor_at: anchorAt, next_at: nextAt }: ScheduleRow): string[] {
  if (frequency === null || anchorAt === null || nextAt === null) return []
  const schedule = { frequency, timing, anchorAt: new Date(anchorAt) }
  const times = [new Date(nextAt)]
  while (times.length < TIMES_SHOWN) times.push(nextAutoRunAt(schedule, times.at(-1)!))
  return times.map((time) => time.toISOString())
}

export function agentVersion({ model, run_budget, day_budget, when_spent }: Unversioned<WorkflowDetailOut['agent']>) {
  return versionOf([model, run_budget, day_budget, when_spent])
}

export function usersVersion(userIds: readonly string[]): string {
  return versionOf([userIds.toSorted()])
}

export function triggerVersion(trigger: TriggerValues): string {
  const { name, is_active, trigger_source: source, events, filters, input_message, subagent_sources } = trigger
  return versionOf([
    name,
    is_active,
    [source.slug, source.name],
    events.map((event) => [event.slug, event.name]),
    filters,
    input_message,
    subagent_sources.map((each) => [each.id, each.name, each.type]),
  ])
}
