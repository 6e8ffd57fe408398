import type { AutoRunFrequency, WorkflowDetailOut } from '@workflow-service/contract'
import { type Connection, versionOf } from '../connection/index.ts'
import { isVisible, type Viewer } from '../organizations/index.ts'
import { nextAutoRunAt } from './auto-run-schedule.ts'

type TriggerOut = WorkflowDetailOut['triggers'][number]
export type TriggerValues = Omit<TriggerOut, 'id' | 'version'>
type Unversioned<Item> = Omit<Item, 'version'>

interface ScheduleRow {
  readonly enabled: boolean | null
  readonly frequency: AutoRunFrequency | null
  readonly anchor_at: string | null
  readonly next_at: string | null
}

interface DetailRow extends Omit<WorkflowDetailOut, 'agent' | 'auto_run' | 'triggers' | 'version' | 'users_version'> {
  readonly schedule: ScheduleRow
  readonly agent: Unversioned<WorkflowDetailOut['agent']>
  readonly triggers: Unversioned<TriggerOut>[]
}

// In the orders of the public API's document: see FIND_WORKFLOWS.
const READ_DETAIL = `
  SELECT row_to_json(document) AS document FROM (
    SELECT workflow.id, workflow.name, workflow.description, workflow.scope, workflow.is_active,
      json_build_object('enabled', workflow.auto_run_enabled, 'frequency', workflow.auto_run_frequency,
        'anchor_at', workflow.auto_run_anchor_at, 'next_at', workflow.auto_run_next_at) AS schedule,
      json_build_object('model', workflow.model, 'run_budget', workflow.run_budget, 'day_budget', workflow.day_budget,
        'when_spent', workflow.when_spent) AS agent,
      (
        SELECT coalesce(json_agg(item), '[]') FROM (
          SELECT users.id, users.email,
            trim(concat_ws(' ', nullif(users.first_name, ''), nullif(users.last_name, ''))) AS name
          FROM workflow_users JOIN users ON users.id = workflow_users.user_id
          WHERE workflow_users.workflow_id = workflow.id ORDER BY users.email
        ) AS item
      ) AS users,
      (
        SELECT coalesce(json_agg(item), '[]') FROM (
          SELECT id, name, is_active, json_build_object('slug', source_slug, 'name', source_name) AS trigger_source,
            (
              SELECT coalesce(json_agg(json_build_object('slug', slug, 'name', name) ORDER BY position), '[]')
              FROM trigger_events WHERE trigger_events.trigger_id = triggers.id
            ) AS events,
            filters, input_message,
            (
              SELECT coalesce(json_agg(json_build_object('id', source_id, 'name', name, 'type', type)
                ORDER BY type = 'platform_internal', name, position), '[]')
              FROM subagent_sources WHERE subagent_sources.trigger_id = triggers.id
            ) AS subagent_sources
          FROM triggers WHERE triggers.workflow_id = workflow.id ORDER BY created_at, id
        ) AS item
      ) AS triggers,
      (
        SELECT coalesce(json_agg(item), '[]') FROM (
          SELECT id, name, path, octet_length(content) AS size, version
          FROM files WHERE files.workflow_id = workflow.id ORDER BY path, name
        ) AS item
      ) AS files,
      to_char(workflow.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS created_at,
      to_char(workflow.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS updated_at
    FROM workflows AS workflow
    WHERE workflow.organization_id = $1 AND workflow.id = $2 AND ${isVisible('workflow', '$3')}
  ) AS document`

/** Reads a workflow as the editor shows it; undefined when the person cannot see it. */
export async function readWorkflowDetail(
  db: Connection,
  { organizationId, memberId }: Viewer,
  workflowId: string,
): Promise<WorkflowDetailOut | undefined> {
  const { rows } = await db.pool.query<{ document: DetailRow }>(READ_DETAIL, [organizationId, workflowId, memberId])
  return rows[0] && toDetail(rows[0].document)
}

function toDetail(row: DetailRow): WorkflowDetailOut {
  const { schedule, triggers, ...rest } = row
  const { enabled, frequency } = schedule
  return {
    ...rest,
    auto_run: { enabled, frequency, next_at: nextTimes(schedule), version: versionOf([enabled, frequency]) },
    agent: { ...row.agent, version: agentVersion(row.agent) },
    users_version: usersVersion(row.users.map(({ id }) => id)),
    triggers: triggers.map(({ id, ...values }) => ({ id, ...values, version: triggerVersion(values) })),
    version: versionOf([row.name, row.description, row.scope]),
  }
}

/** The next three times of the schedule. */
function nextTimes({ frequency, anchor_at: anchorAt, next_at: nextAt }: ScheduleRow): string[] {
  if (frequency === null || anchorAt === null || nextAt === null) return []
  const schedule = { frequency, anchorAt: new Date(anchorAt) }
  const times = [new Date(nextAt)]
  while (times.length < 3) times.push(nextAutoRunAt(schedule, times.at(-1)!))
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
