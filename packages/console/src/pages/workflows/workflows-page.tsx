import { Link, Outlet, useLocation, useNavigate } from '@tanstack/react-router'
import type { WorkflowDetailOut, WorkflowRowOut } from '@workflow-service/contract'
import { useEffect } from 'react'
import { call, newId, useList, mutate } from '../../api/index.ts'
import { ListPage } from '../../components/data-list.tsx'
import { openForm, useDeletion } from '../../components/dialog.tsx'
import { download } from '../../components/download.ts'
import { Switch, TextField } from '../../components/fields.tsx'
import { useFilters } from '../../components/filters.tsx'
import { Menu } from '../../components/menu.tsx'
import { Page, pageOf, useTitle } from '../../components/page.tsx'
import { LastStatus, Time } from '../../components/status-and-time.tsx'
import { beginningOf } from '../../components/text.ts'
import { linkTo } from '../../components/thing-link.tsx'
import { announce, toast } from '../../components/toast.ts'
import { CopyId } from '../../components/values.tsx'

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
      search="Find a workflow"
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
function ActiveSwitch({ workflow, label }: { workflow: Switched; label?: string }) {
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

const TABS = [
  ['/workflows/$workflow_id', 'Edit'],
  ['/workflows/$workflow_id/triggers', 'Triggers'],
  ['/workflows/$workflow_id/people', 'People'],
  ['/workflows/$workflow_id/files', 'Files'],
  ['/workflows/$workflow_id/schedule', 'Schedule'],
  ['/workflows/$workflow_id/agent', 'Agent'],
  ['/workflows/$workflow_id/runs', 'Runs'],
  ['/workflows/$workflow_id/cases', 'Cases'],
  ['/workflows/$workflow_id/history', 'History'],
  ['/workflows/$workflow_id/try', 'Try it'],
] as const

export const WorkflowLayout = pageOf('getWorkflow', Layout)

function Layout(workflow: WorkflowDetailOut) {
  const { id, name } = workflow
  const navigate = useNavigate()
  const askToDelete = useDeletion()
  const params = { workflow_id: id }
  const path = useLocation({ select: ({ pathname }) => pathname })
  const [, tab] = TABS.findLast(([to]) => path.endsWith(to.replace(/.*workflow_id/, ''))) ?? TABS[0]
  useTitle(`${tab} – ${name}`)
  useEffect(
    () => () => {
      // Of the part that is shown after this one, if it is one of a workflow.
      const link = document.querySelector<HTMLElement>('.tabs [aria-current]')
      // A link of the part that was left is gone, and with it the focus.
      if (link === document.activeElement) announce(`${link?.textContent} is shown.`)
      else link?.focus()
    },
    // When another part is shown.
    // oxlint-disable-next-line react/exhaustive-effect-dependencies
    [tab],
  )
  const duplicate = () => {
    const copyId = newId()
    openForm({
      title: `Duplicate ${name}`,
      action: 'Duplicate',
      isTransient: true,
      savedText: 'Duplicated. The copy is switched off.',
      values: { name: beginningOf(`Copy of ${name}`, 500) },
      save: (values) => mutate('duplicateWorkflow', { params, body: { id: copyId, ...values } }),
      onSaved: () => navigate(linkTo('workflow', copyId)),
      fields: ({ field }) => (
        <TextField
          hint="Triggers, files and people are copied; runs and the schedule are not."
          {...field('name', 'Name of the copy')}
        />
      ),
    })
  }
  const exportManifest = async () => download(name, 'yaml', (await call('exportWorkflow', { params })).yaml)
  const remove = () =>
    askToDelete({
      name,
      text: 'Its triggers, files and runs are deleted with it. This cannot be undone.',
      action: 'Delete workflow',
      remove: () => call('deleteWorkflow', { params }),
      list: '/workflows',
    })
  return (
    <Page
      title={name}
      back={['Workflows', { to: '/workflows' }]}
      meta={<CopyId id={id} isShort label="workflow id" />}
      actions={
        <>
          <ActiveSwitch workflow={workflow} label={workflow.is_active ? 'Switched on' : 'Switched off'} />
          <Menu
            label="More actions"
            items={[
              { label: 'Duplicate', icon: 'copy', onClick: duplicate },
              { label: 'Export as manifest', icon: 'file', onClick: exportManifest },
              { label: 'Delete', icon: 'trash', variant: 'danger', onClick: remove },
            ]}
          />
        </>
      }
    >
      <nav className="tabs" aria-label="Parts of the workflow">
        {TABS.map(([to, label]) => (
          <Link key={to} to={to} params={params} activeOptions={{ exact: true, includeSearch: false }}>
            {label}
          </Link>
        ))}
      </nav>
      <Outlet />
    </Page>
  )
}
