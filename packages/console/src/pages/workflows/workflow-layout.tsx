import { Link, linkOptions, Outlet, useNavigate, useParams } from '@tanstack/react-router'
import type { WorkflowDetailOut } from '@workflow-service/contract'
import { useState } from 'react'
import { call } from '../../api/call.ts'
import { newId } from '../../api/new-id.ts'
import { refresh, useRead, useWrite } from '../../api/queries.ts'
import { CopyId } from '../../components/copy.tsx'
import { ConfirmDialog, Dialog } from '../../components/dialog.tsx'
import { download } from '../../components/download.ts'
import { Switch, TextField } from '../../components/fields.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { Menu } from '../../components/menu.tsx'
import { Page } from '../../components/page.tsx'
import { Loaded } from '../../components/states.tsx'
import { Tabs } from '../../components/tabs.tsx'
import { toast, tryIt } from '../../components/toast.tsx'

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
  return <Loaded query={query}>{(workflow) => <Layout key={workflow.id} workflow={workflow} />}</Loaded>
}

function Layout({ workflow }: { workflow: WorkflowDetailOut }) {
  const params = { workflowId: workflow.id }
  const [open, setOpen] = useState<'duplicate' | 'delete'>()
  const close = () => setOpen(undefined)
  const exportManifest = () =>
    void tryIt(async () => {
      const { yaml } = await call('exportWorkflow', { params: { workflow_id: workflow.id } })
      download(workflow.name, 'yaml', yaml)
    })
  return (
    <Page
      title={workflow.name}
      back={{ label: 'Workflows', link: linkOptions({ to: '/workflows' }) }}
      meta={<CopyId id={workflow.id} label="workflow id" />}
      actions={
        <>
          <ActiveSwitch workflow={workflow} />
          <Menu
            label="More actions"
            groups={[
              [
                { label: 'Duplicate', icon: 'copy', onSelect: () => setOpen('duplicate') },
                { label: 'Export as manifest', icon: 'file', onSelect: exportManifest },
              ],
              [{ label: 'Delete', icon: 'trash', isDangerous: true, onSelect: () => setOpen('delete') }],
            ]}
          />
        </>
      }
    >
      <Tabs label="Parts of the workflow">
        {TABS.map(([to, label]) => (
          <Link key={to} to={to} params={params} activeOptions={{ exact: true, includeSearch: false }}>
            {label}
          </Link>
        ))}
      </Tabs>
      <Outlet />
      {open === 'duplicate' ? <Duplicate workflow={workflow} onClose={close} /> : null}
      {open === 'delete' ? <Delete workflow={workflow} onClose={close} /> : null}
    </Page>
  )
}

function ActiveSwitch({ workflow }: { workflow: WorkflowDetailOut }) {
  const write = useWrite('setWorkflowActive')
  const isActive = write.isPending ? write.variables.body.is_active : workflow.is_active
  const set = (value: boolean) =>
    void tryIt(async () => {
      await write.mutateAsync({ params: { workflow_id: workflow.id }, body: { is_active: value } })
      toast(value ? 'Switched on.' : 'Switched off: it cannot be started.')
    })
  return <Switch label="Active" value={isActive} onValue={set} />
}

interface DialogOfWorkflow {
  workflow: WorkflowDetailOut
  onClose: () => void
}

function Duplicate({ workflow, onClose }: DialogOfWorkflow) {
  const navigate = useNavigate()
  const [id] = useState(newId)
  const write = useWrite('duplicateWorkflow')
  const form = useForm({
    values: { name: `Copy of ${workflow.name}`.slice(0, 500) },
    savedText: 'Duplicated. The copy is switched off.',
    warnsBeforeLeaving: false,
    async save({ name }) {
      await write.mutateAsync({ params: { workflow_id: workflow.id }, body: { id, name } })
      onClose()
      await navigate({ to: '/workflows/$workflowId', params: { workflowId: id } })
    },
  })
  return (
    <Dialog title={`Duplicate ${workflow.name}`} onClose={onClose}>
      <Form form={form} action="Duplicate">
        <TextField
          label="Name of the copy"
          hint="Triggers, files and people are copied; runs and the schedule are not."
          {...form.field('name')}
        />
      </Form>
    </Dialog>
  )
}

function Delete({ workflow, onClose }: DialogOfWorkflow) {
  const navigate = useNavigate()
  return (
    <ConfirmDialog
      title={`Delete ${workflow.name}`}
      action="Delete workflow"
      typed={workflow.name}
      onClose={onClose}
      onConfirm={async () => {
        await call('deleteWorkflow', { params: { workflow_id: workflow.id } })
        // Left before everything is read again: this page would read a workflow that does not exist.
        await navigate({ to: '/workflows', ignoreBlocker: true })
        void refresh()
        toast(`${workflow.name} is deleted.`)
      }}
    >
      <p>Its triggers, files and runs are deleted with it. This cannot be undone.</p>
    </ConfirmDialog>
  )
}
