import type { WorkflowDetailOut, WorkflowReadOut } from '@workflow-service/contract'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { newId, write } from '../../api/index.ts'
import { RadioGroup, TextField } from '../../components/fields.tsx'
import { editing, Form, type FormState, useForm } from '../../components/form.tsx'
import { Page } from '../../components/page.tsx'
import { Notice } from '../../components/states.tsx'
import { linkTo, tryLink } from '../../components/thing-link.tsx'
import { DescriptionField } from './description-field.tsx'
import { beyondNames, findRules, ReadinessPanel, RulesNote, WriteRuleLink } from './readiness-panel.tsx'
import { useWorkflow } from './use-workflow.ts'
import { type Scope, SCOPES } from './workflows-page.tsx'

interface Values {
  name: string
  description: string
  scope: Scope
}

const valuesOf = ({ name, description, scope }: WorkflowDetailOut): Values => ({
  name,
  description,
  scope: scope as Scope,
})

export function WorkflowEditPage() {
  const workflow = useWorkflow()
  const form = useForm({
    ...editing(workflow, valuesOf),
    save: (values, version) =>
      write('saveWorkflow', { params: { workflow_id: workflow.id }, body: { ...values, version } }),
  })
  return (
    <div className="with-side">
      <WorkflowForm form={form} action="Save" workflow={workflow} />
      <ReadinessPanel
        workflow={workflow}
        action={{ label: 'Try it', icon: 'run', variant: 'primary', link: tryLink(workflow.id) }}
      />
    </div>
  )
}

export function NewWorkflowPage() {
  const navigate = useNavigate()
  const [id] = useState(newId)
  const form = useForm<Values>({
    values: { name: '', description: '', scope: 'company_wide' },
    savedText: null,
    async save(values) {
      await write('createWorkflow', { body: { id, ...values } })
      await navigate(linkTo('workflow', id))
    },
  })
  return (
    <Page
      title="New workflow"
      back={['Workflows', { to: '/workflows' }]}
      intro="It begins switched off. The next page says what is missing until it can start."
    >
      <div className="narrow">
        <WorkflowForm form={form} action="Create workflow" />
      </div>
    </Page>
  )
}

const SCOPE_HINTS = {
  company_wide: 'Everyone in your organization sees it.',
  only_me: 'The people listed under People see it, and admins.',
}

function WorkflowForm(props: { form: FormState<Values>; action: string; workflow?: WorkflowReadOut }) {
  const { form, action, workflow } = props
  const rules = workflow && findRules(workflow)
  return (
    <Form form={form} action={action} canReset={action === 'Save'}>
      <TextField required placeholder="Forward orders" {...form.field('name', 'Name')} />
      <DescriptionField {...form.field('description', 'Description')} />
      {workflow && rules ? (
        <Notice>
          <RulesNote workflowId={workflow.id} rules={rules} />
        </Notice>
      ) : null}
      {workflow
        ? beyondNames(workflow.warnings).map(({ code, message }) => (
            <Notice key={message} kind="warning">
              {message}. {code === 'rules_needed' ? <WriteRuleLink workflowId={workflow.id} /> : null}
            </Notice>
          ))
        : null}
      <RadioGroup options={SCOPES} hints={SCOPE_HINTS} {...form.field('scope', 'Who has access')} />
    </Form>
  )
}
