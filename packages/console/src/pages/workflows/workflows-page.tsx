import { linkOptions } from '@tanstack/react-router'
import type { WorkflowRowOut } from '@workflow-service/contract'
import { useList, useWrite } from '../../api/queries.ts'
import { LinkButton } from '../../components/button.tsx'
import { DataList, FilterSearch, useFilters } from '../../components/data-list.tsx'
import { Switch } from '../../components/fields.tsx'
import { Page } from '../../components/page.tsx'
import { EmptyState } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { Time } from '../../components/time.tsx'
import { tryIt } from '../../components/toast.tsx'

export const SCOPES = [
  ['company_wide', 'Everyone', 'Everyone in your organization sees it.'],
  ['only_me', 'Only listed people', 'The people listed under People see it, and admins.'],
] as const
export type Scope = (typeof SCOPES)[number][0]

export function WorkflowsPage() {
  const filters = useFilters('search')
  const { search } = filters.values
  const list = useList('listWorkflows', { query: search ? { search } : {} })
  const create = (
    <LinkButton to="/workflows/new" variant="primary" icon="plus">
      New workflow
    </LinkButton>
  )
  const isEmpty = list.rows.length === 0 && !filters.isFiltered
  return (
    <Page title="Workflows" actions={isEmpty ? null : create}>
      <DataList
        label="workflows"
        list={list}
        columns={[
          { header: 'Name', cell: ({ name }) => name },
          { header: 'Active', cell: (row) => <ActiveSwitch row={row} /> },
          { header: 'Last run', cell: (row) => <LastRun row={row} /> },
          {
            header: 'Next run',
            cell: ({ next_run_at: next, is_active: isActive }) =>
              next && isActive ? <Time value={next} /> : <span className="muted">Not scheduled</span>,
          },
          { header: 'Access', cell: ({ scope }) => SCOPES.find(([value]) => value === scope)?.[1], isSecondary: true },
          { header: 'Triggers', cell: ({ trigger_count: count }) => count, isNumber: true, isSecondary: true },
        ]}
        rowLink={({ id }) => linkOptions({ to: '/workflows/$workflowId', params: { workflowId: id } })}
        filters={isEmpty ? null : <FilterSearch filters={filters} name="search" label="Find a workflow" />}
        isFiltered={filters.isFiltered}
        empty={
          <EmptyState icon="workflow" title="No workflow yet" action={create}>
            A workflow is a task in plain words for an agent. Name a webhook source in it, and the agent sends its
            results there.
          </EmptyState>
        }
      />
    </Page>
  )
}

function ActiveSwitch({ row }: { row: Pick<WorkflowRowOut, 'id' | 'name' | 'is_active'> }) {
  const write = useWrite('setWorkflowActive')
  const set = (isActive: boolean) =>
    void tryIt(async () => {
      await write.mutateAsync({ params: { workflow_id: row.id }, body: { is_active: isActive } })
    })
  return (
    <Switch
      label={<span className="visually-hidden">{row.name} is active</span>}
      value={write.isPending ? write.variables.body.is_active : row.is_active}
      onValue={set}
    />
  )
}

function LastRun({ row: { last_run: run } }: { row: WorkflowRowOut }) {
  if (!run) return <span className="muted">Never</span>
  return (
    <span className="row" title={run.error ?? undefined}>
      <StatusBadge status={run.status} />
      <span className="muted">
        <Time value={run.created_at} />
      </span>
    </span>
  )
}
