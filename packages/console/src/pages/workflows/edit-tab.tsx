import type { WorkflowDetailOut } from '@workflow-service/contract'
import { useWrite } from '../../api/queries.ts'
import { LinkButton } from '../../components/button.tsx'
import { RadioGroup, TextField } from '../../components/fields.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { DescriptionField } from './description-field.tsx'
import { ReadinessPanel } from './readiness-panel.tsx'
import { useWorkflow } from './use-workflow.ts'
import { type Scope, SCOPES } from './workflows-page.tsx'

const valuesOf = ({ name, description, scope }: WorkflowDetailOut) => ({
  name,
  description,
  scope: scope as Scope,
})

export function WorkflowEditPage() {
  const workflow = useWorkflow()
  const write = useWrite('saveWorkflow')
  const form = useForm({
    values: valuesOf(workflow),
    version: workflow.version,
    labels: { name: 'Name', description: 'Description', scope: 'Who has access' },
    fromCurrent: (current: WorkflowDetailOut) => ({ values: valuesOf(current), version: current.version }),
    save: async (values, version) =>
      (await write.mutateAsync({ params: { workflow_id: workflow.id }, body: { ...values, version } })).version,
  })
  return (
    <div className="with-side">
      <Form form={form} action="Save" canReset>
        <TextField label="Name" required {...form.field('name')} />
        <DescriptionField {...form.field('description')} />
        <RadioGroup label="Who has access" options={SCOPES} {...form.field('scope')} />
      </Form>
      <ReadinessPanel
        workflow={workflow}
        action={
          <LinkButton to="/workflows/$workflowId/try" params={{ workflowId: workflow.id }} variant="primary" icon="run">
            Try it
          </LinkButton>
        }
      />
    </div>
  )
}
