import { linkOptions, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { newId } from '../../api/new-id.ts'
import { useWrite } from '../../api/queries.ts'
import { RadioGroup, TextField } from '../../components/fields.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { Page } from '../../components/page.tsx'
import { DescriptionField } from './description-field.tsx'
import { type Scope, SCOPES } from './workflows-page.tsx'

export function NewWorkflowPage() {
  const navigate = useNavigate()
  const [id] = useState(newId)
  const write = useWrite('createWorkflow')
  const form = useForm<{ name: string; description: string; scope: Scope }>({
    values: { name: '', description: '', scope: 'company_wide' },
    savedText: null,
    async save(values) {
      await write.mutateAsync({ body: { id, ...values } })
      await navigate({ to: '/workflows/$workflowId', params: { workflowId: id } })
    },
  })
  return (
    <Page
      title="New workflow"
      back={{ label: 'Workflows', link: linkOptions({ to: '/workflows' }) }}
      intro="It begins switched off. The next page says what is missing until it can start."
    >
      <div className="narrow">
        <Form form={form} action="Create workflow">
          <TextField label="Name" required placeholder="Forward orders" {...form.field('name')} />
          <DescriptionField {...form.field('description')} />
          <RadioGroup label="Who has access" options={SCOPES} {...form.field('scope')} />
        </Form>
      </div>
    </Page>
  )
}
