import { Link, Outlet, useLocation, useNavigate, useParams } from '@tanstack/react-router'
import type { WorkflowDetailOut } from '@workflow-service/contract'
import { useEffect, useRef, useState } from 'react'
import { call } from '../../api/call.ts'
import { newId } from '../../api/new-id.ts'
import { refresh, useRead, write } from '../../api/queries.ts'
import { CopyId } from '../../components/copy.tsx'
import { FormDialog } from '../../components/dialog.tsx'
import { download } from '../../components/download.ts'
import { TextField } from '../../components/fields.tsx'
import { useForm } from '../../components/form.tsx'
import { Menu } from '../../components/menu.tsx'
import { askToConfirm, openDialog } from '../../components/open-dialog.tsx'
import { Page } from '../../components/page.tsx'
import { Loaded } from '../../components/states.tsx'
import { ActiveSwitch } from './workflows-page.tsx'

const TABS = [
  ['/workflows/$workflowId', 'Edit'],
  ['/workflows/$workflowId/triggers', 'Triggers'],
  ['/workflows/$workflowId/people', 'People'],
  ['/workflows/$workflowId/files', 'Files'],
  ['/workflows/$workflowId/schedule', 'Schedule'],
  ['/workflows/$workflowId/runs', 'Runs'],
  ['/workflows/$workflowId/try', 'Try it'],
] as const

export function WorkflowLayout() {
  const { workflowId } = useParams({ from: '/app/workflows/$workflowId' })
  const query = useRead('getWorkflow', { params: { workflow_id: workflowId } })
  return (
    <Loaded query={query} isPage>
      {(workflow) => <Layout key={workflow.id} workflow={workflow} />}
    </Loaded>
  )
}

function Layout({ workflow }: { workflow: WorkflowDetailOut }) {
  const { id, name } = workflow
  const navigate = useNavigate()
  const params = { workflow_id: id }
  const tabs = useRef<HTMLElement>(null)
  const { pathname } = useLocation()
  useEffect(() => {
    tabs.current?.querySelector(`a[href="${pathname}"]`)?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [pathname])
  const duplicate = () => openDialog((close) => <Duplicate workflow={workflow} onClose={close} />)
  const exportManifest = async () => download(name, 'yaml', (await call('exportWorkflow', { params })).yaml)
  const remove = () =>
    askToConfirm({
      title: `Delete ${name}`,
      text: 'Its triggers, files and runs are deleted with it. This cannot be undone.',
      action: 'Delete workflow',
      typed: name,
      onConfirm: async () => {
        await call('deleteWorkflow', { params })
        // Left before everything is read again: this page would read a workflow that does not exist.
        await navigate({ to: '/workflows', ignoreBlocker: true })
        void refresh()
      },
      done: `${name} is deleted.`,
    })
  return (
    <Page
      title={name}
      back={['Workflows', { to: '/workflows' }]}
      meta={<CopyId id={id} isShort label="workflow id" />}
      actions={
        <>
          <ActiveSwitch workflow={workflow} label="Active" />
          <Menu
            label="More actions"
            groups={[
              [
                { label: 'Duplicate', icon: 'copy', onSelect: duplicate },
                { label: 'Export as manifest', icon: 'file', onSelect: exportManifest },
              ],
              [{ label: 'Delete', icon: 'trash', isDangerous: true, onSelect: remove }],
            ]}
          />
        </>
      }
    >
      <nav ref={tabs} className="tabs" aria-label="Parts of the workflow">
        {TABS.map(([to, label]) => (
          <Link key={to} to={to} params={{ workflowId: id }} activeOptions={{ exact: true, includeSearch: false }}>
            {label}
          </Link>
        ))}
      </nav>
      <Outlet />
    </Page>
  )
}

function Duplicate({ workflow, onClose }: { workflow: WorkflowDetailOut; onClose: () => void }) {
  const navigate = useNavigate()
  const [id] = useState(newId)
  const form = useForm({
    values: { name: `Copy of ${workflow.name}`.slice(0, 500) },
    savedText: 'Duplicated. The copy is switched off.',
    isTransient: true,
    async save({ name }) {
      await write('duplicateWorkflow', { params: { workflow_id: workflow.id }, body: { id, name } })
      onClose()
      await navigate({ to: '/workflows/$workflowId', params: { workflowId: id } })
    },
  })
  const hint = 'Triggers, files and people are copied; runs and the schedule are not.'
  return (
    <FormDialog title={`Duplicate ${workflow.name}`} form={form} action="Duplicate" onClose={onClose}>
      <TextField hint={hint} {...form.field('name', 'Name of the copy')} />
    </FormDialog>
  )
}
