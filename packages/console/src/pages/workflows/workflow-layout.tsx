import { Link, Outlet, useNavigate, useParams } from '@tanstack/react-router'
import type { WorkflowDetailOut, WorkflowReadOut } from '@workflow-service/contract'
import { call, newId, useRead, mutate } from '../../api/index.ts'
import { openForm, useDeletion } from '../../components/dialog.tsx'
import { download } from '../../components/download.ts'
import { TextField } from '../../components/fields.tsx'
import { Menu } from '../../components/menu.tsx'
import { Page, pageOf } from '../../components/page.tsx'
import { linkTo } from '../../components/thing-link.tsx'
import { CopyId } from '../../components/values.tsx'
import { ActiveSwitch } from './workflows-page.tsx'

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
  const duplicate = () => {
    const copyId = newId()
    openForm({
      title: `Duplicate ${name}`,
      action: 'Duplicate',
      isTransient: true,
      savedText: 'Duplicated. The copy is switched off.',
      values: { name: `Copy of ${name}`.slice(0, 500) },
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

/** The workflow of the URL. Only below `WorkflowLayout`, which waits for it. */
export function useWorkflow(): WorkflowReadOut {
  const { data } = useRead('getWorkflow', { params: useParams({ from: '/app/workflows/$workflow_id' }) })
  if (!data) throw new Error('useWorkflow is only available below the layout of a workflow.')
  return data
}
