import type { WorkflowRowOut } from '@workflow-service/contract'
import { useList, mutate } from '../../api/index.ts'
import { FilterSearch, ListPage, useFilters } from '../../components/data-list.tsx'
import { Switch } from '../../components/fields.tsx'
import { LastStatus, Time } from '../../components/status-and-time.tsx'
import { linkTo } from '../../components/thing-link.tsx'
import { toast } from '../../components/toast.ts'

export const SCOPES = { company_wide: 'Everyone', only_me: 'Only listed people' }
export type Scope = keyof typeof SCOPES

export function WorkflowsPage() {
  const filters = useFilters('search')
  return (
    <ListPage
      title="Workflows"
      create={{ label: 'New workflow', link: { to: '/workflows/new' } }}
      label="workflows"
      list={useList('listWorkflows', { query: filters })}
      columns={[
        { header: 'Name', cell: ({ name }) => name },
        { header: 'Active', cell: (row) => <ActiveSwitch workflow={row} /> },
        { header: 'Last run', cell: (row) => <LastRun run={row.last_run} /> },
        {
          header: 'Next run',
          cell: (row) => <Time value={row.is_active ? row.next_run_at : null} none="Not scheduled" />,
        },
        { header: 'Access', cell: ({ scope }) => SCOPES[scope as Scope], isShort: true, isSecondary: true },
        { header: 'Triggers', cell: ({ trigger_count: count }) => count, isNumber: true, isSecondary: true },
      ]}
      rowLink={({ id }) => linkTo('workflow', id)}
      filters={filters}
      controls={<FilterSearch name="search" label="Find a workflow" />}
      empty={{
        icon: 'workflow',
        title: 'No workflow yet',
        text: 'A workflow is a task in plain words for an agent. Name a webhook source in it, and the agent sends its results there.',
      }}
    />
  )
}

type Switched = Pick<WorkflowRowOut, 'id' | 'name' | 'is_active'>

/** Switches a workflow on or off. `label`: where its name is not shown beside it. */
export function ActiveSwitch({ workflow, label }: { workflow: Switched; label?: string }) {
  const { id, name, is_active: isActive } = workflow
  const set = async (isOn: boolean) => {
    await mutate('setWorkflowActive', { params: { workflow_id: id }, body: { is_active: isOn } })
    toast(isOn ? 'Switched on.' : 'Switched off: it cannot be started.')
  }
  const hidden = <span className="visually-hidden">{name} is active</span>
  return <Switch label={label ?? hidden} value={isActive} onValue={set} />
}

function LastRun({ run }: { run: WorkflowRowOut['last_run'] }) {
  if (!run) return <span className="muted">Never</span>
  return <LastStatus status={run.status} at={run.created_at} reason={run.error} />
}
