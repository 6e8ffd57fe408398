import { START_CONFLICTS, type WorkflowDetailOut, type WorkflowRowOut } from '@workflow-service/contract'
import {
  findWorkflows,
  listWorkflowRows,
  readReadiness,
  readWorkflowDetail,
  type WorkflowReadiness,
} from '@workflow-service/database'
import { type CommandResult, listResult } from '../command-result.ts'
import type { OrganizationContext } from '../cli-context.ts'
import { CliError } from '../cli-error.ts'
import { findWorkflow } from './find.ts'
import { statusColour } from '../run-columns.ts'
import { formatFacts, paint, renderTable, showTime, type Terminal, withoutControls } from '../terminal.ts'

const PAGE_SIZE = 100

export async function list(
  { db, organization }: OrganizationContext,
  { search, limit }: { search?: string; limit: number },
): Promise<CommandResult> {
  const viewer = { organizationId: organization.id, memberId: null }
  const workflows: WorkflowRowOut[] = []
  let after: Awaited<ReturnType<typeof listWorkflowRows>>['next']
  do {
    const pageLimit = Math.min(PAGE_SIZE, limit - workflows.length)
    const page = await listWorkflowRows(db, viewer, { limit: pageLimit, search, after })
    workflows.push(...page.rows)
    after = page.next
  } while (after && workflows.length < limit)
  const none =
    search === undefined ? 'has no workflows. Create them with wf apply and a manifest' : 'has no such workflow'
  return listResult(
    workflows,
    [
      { title: 'NAME', value: ({ name }) => name, cut: 'name' },
      { title: 'ID', value: ({ id }) => id, cut: 'id' },
      {
        title: 'STATE',
        value: ({ is_active: isActive }) => (isActive ? 'active' : 'inactive'),
        colour: ({ is_active: isActive }) => (isActive ? 'green' : 'dim'),
      },
      { title: 'NEXT RUN (UTC)', time: (row) => row.next_run_at },
      { title: 'LAST RUN (UTC)', time: (row) => row.last_run?.created_at ?? null },
      {
        title: 'RESULT',
        value: (row) => row.last_run?.status ?? '–',
        colour: (row) => (row.last_run ? statusColour(row.last_run.status) : undefined),
        cut: 'never',
      },
    ],
    `${organization.name} ${none}.`,
  )
}

export async function show(ctx: OrganizationContext, given: string): Promise<CommandResult> {
  const { db, organization } = ctx
  const { id } = await findWorkflow(ctx, given)
  const viewer = { organizationId: organization.id, memberId: null }
  const detail = await readWorkflowDetail(db, viewer, id)
  const readiness = await readReadiness(db, viewer, id)
  const [document] = await findWorkflows(db, [{ organizationId: organization.id, workflowId: id }])
  if (!detail || !readiness || !document) throw new CliError(`${organization.name} has no workflow ${given} any more.`)
  const { start, users, end } = document
  return {
    json: JSON.parse(`${start}${users?.json.toString() ?? ''}${end}`) as unknown,
    text: (terminal) => formatWorkflow(terminal, detail, readiness),
  }
}

function formatWorkflow(terminal: Terminal, workflow: WorkflowDetailOut, readiness: WorkflowReadiness): string {
  const { name, id, scope, is_active: isActive, auto_run: schedule, users } = workflow
  const everyone = scope === 'company_wide' ? 'everyone in the organization' : 'no user'
  const facts: [string, string][] = [
    ['id', id],
    ['state', isActive ? 'active' : 'inactive'],
    [
      'access',
      `${scope}: ${scope !== 'company_wide' && users.length > 0 ? users.map(({ email }) => email).join(', ') : everyone}`,
    ],
    ['schedule', describeSchedule(schedule)],
    ['changed', `${showTime(workflow.updated_at)} UTC`],
    ['can start', describeReadiness(readiness)],
  ]
  const lines = workflow.description.split('\n').map((line) => `  ${withoutControls(line)}`.trimEnd())
  return [
    `${paint(terminal, 'bold', withoutControls(name))}\n`,
    formatFacts(terminal, facts),
    section(terminal, 'Description', workflow.description === '' ? '' : `${lines.join('\n')}\n`),
    section(
      terminal,
      'Triggers',
      renderTable(
        terminal,
        [
          { title: 'SOURCE', value: (trigger) => trigger.trigger_source.slug, cut: 'name' },
          { title: 'STATE', value: (trigger) => (trigger.is_active ? 'active' : 'paused') },
          { title: 'NAME', value: (trigger) => trigger.name, cut: 'name' },
          { title: 'EVENTS', value: ({ events }) => events.map(({ slug }) => slug).join(', ') },
        ],
        workflow.triggers,
        '',
      ),
    ),
    section(
      terminal,
      'Files',
      renderTable(
        terminal,
        [
          { title: 'BYTES', value: ({ size }) => String(size) },
          { title: 'PATH', value: ({ path, name: file }) => [...path, file].join('/') },
        ],
        workflow.files,
        '',
      ),
    ),
  ].join('')
}

function section(terminal: Terminal, title: string, text: string): string {
  return text.trim() === '' ? '' : `\n${paint(terminal, 'bold', title)}\n${text}`
}

function describeSchedule({ enabled, frequency, next_at: [next] }: WorkflowDetailOut['auto_run']): string {
  if (!enabled || frequency === null) return enabled === null ? 'none' : 'off'
  return next === undefined ? frequency : `${frequency}, next ${showTime(next)} UTC`
}

function describeReadiness({ isSuspended, violations }: WorkflowReadiness): string {
  if (isSuspended) return 'no: the organization is suspended'
  const violated = (['workflow_inactive', 'no_active_api_trigger', 'no_users_with_access'] as const).filter(
    (rule) => violations[rule],
  )
  return violated.length === 0 ? 'yes' : `no: ${violated.map((rule) => START_CONFLICTS[rule]).join(' ')}`
}
