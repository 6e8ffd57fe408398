import type { AppResponseBody, WorkflowDetailOut } from '@workflow-service/contract'
import { mutate, useIsAdmin, useRead } from '../../api/index.ts'
import { RadioGroup, SelectField, TextField } from '../../components/fields.tsx'
import { editFormOptions, Form, useForm } from '../../components/form.tsx'
import { Loaded, Section } from '../../components/page.tsx'
import { fromMicros, toMicros } from '../../components/values.tsx'
import { useWorkflow } from './use-workflow.ts'

const WHEN_SPENT = { fail: 'The run fails', wait: 'The run waits for the next day or month' }

const valuesOf = (agent: WorkflowDetailOut['agent']) => ({
  model: agent.model ?? '',
  run_budget: fromMicros(agent.run_budget),
  day_budget: fromMicros(agent.day_budget),
  when_spent: agent.when_spent,
})

export function WorkflowAgentPage() {
  return (
    <Section title="Agent" intro="What executes the runs, and what they may spend on models." isNarrow>
      <Loaded query={useRead('listModels')}>{({ data }) => <AgentForm models={data} />}</Loaded>
    </Section>
  )
}

const MEDIA = { pdf: 'PDFs', image: 'images' }

function AgentForm({ models }: { models: AppResponseBody<'listModels'>['data'] }) {
  const { id, agent } = useWorkflow()
  const isAdmin = useIsAdmin()
  const form = useForm({
    ...editFormOptions(agent, valuesOf, (current: WorkflowDetailOut) => current.agent),
    save: async ({ model, run_budget: ofRun, day_budget: ofDay, when_spent }, version) => {
      const body = {
        model: model || null,
        run_budget: toMicros('run_budget', ofRun),
        day_budget: toMicros('day_budget', ofDay),
        when_spent,
        version,
      }
      return (await mutate('saveWorkflowAgent', { params: { workflow_id: id }, body })).agent
    },
  })
  const offered = models.filter(({ name, is_offered: isOffered }) => isAdmin || isOffered || name === agent.model)
  const names = offered.map(({ name, data_region: region, fallback, reads }) => {
    const text = name === 'builtin' ? 'The built-in agent (no model)' : name
    const read = reads.length > 0 && `reads ${reads.map((kind) => MEDIA[kind]).join(' and ')}`
    const parts = [text, read, region && `data in ${region}`, fallback && `fallback ${fallback}`]
    return [name, parts.filter(Boolean).join(', ')]
  })
  const standard = models.find(({ is_default: isDefault }) => isDefault)?.name
  const currency = models.find((each) => each.currency)?.currency
  const unit = currency ? ` (${currency})` : ''
  return (
    <Form form={form} action="Save" canReset>
      <SelectField
        options={Object.fromEntries(names)}
        none={standard ? `The default of the service (${standard})` : 'The default of the service'}
        {...form.field('model', 'Model')}
      />
      <TextField
        inputMode="decimal"
        disabled={!isAdmin}
        hint={isAdmin ? 'Empty: no limit.' : 'An admin changes budgets.'}
        {...form.field('run_budget', `Budget of a run${unit}`)}
      />
      <TextField
        inputMode="decimal"
        disabled={!isAdmin}
        hint="Of all runs of the workflow in a day (UTC). Empty: no limit."
        {...form.field('day_budget', `Budget of a day${unit}`)}
      />
      <RadioGroup
        options={WHEN_SPENT}
        {...form.field('when_spent', 'When the budget of the day or the month is spent')}
      />
    </Form>
  )
}
