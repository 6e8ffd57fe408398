import type { WorkflowDetailOut } from '@workflow-service/contract'
import { useWrite } from '../../api/queries.ts'
import { Checkbox, SelectField } from '../../components/fields.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { Section } from '../../components/page.tsx'
import { Notice } from '../../components/states.tsx'
import { Time, utcText } from '../../components/time.tsx'
import { useWorkflow } from './use-workflow.ts'

const FREQUENCIES = [
  ['hourly', 'Every hour'],
  ['daily', 'Every day'],
  ['weekly', 'Every week'],
  ['monthly', 'Every month'],
] as const

const valuesOf = ({ auto_run: { enabled, frequency } }: WorkflowDetailOut) => ({
  enabled: enabled ?? false,
  frequency: frequency ?? ('daily' as const),
})

export function WorkflowSchedulePage() {
  const workflow = useWorkflow()
  const { auto_run: autoRun } = workflow
  const write = useWrite('saveAutoRun')
  const form = useForm({
    values: valuesOf(workflow),
    version: autoRun.version,
    labels: { enabled: 'Runs on a schedule', frequency: 'How often' },
    fromCurrent: (current: WorkflowDetailOut) => ({ values: valuesOf(current), version: current.auto_run.version }),
    save: async (values, version) =>
      (await write.mutateAsync({ params: { workflow_id: workflow.id }, body: { ...values, version } })).auto_run
        .version,
  })
  return (
    <Section
      title="Schedule"
      intro="Starts the workflow again and again, each time in a new session and without a text. It recurs at the minute at which it was switched on."
    >
      <div className="narrow stack">
        <Form form={form} action="Save" canReset>
          <Checkbox label="Run on a schedule" {...form.field('enabled')} />
          <SelectField
            label="How often"
            options={FREQUENCIES}
            {...form.field('frequency')}
            disabled={!form.values.enabled}
          />
        </Form>
        {autoRun.enabled && !workflow.is_active ? (
          <Notice kind="warning">The workflow is switched off, so its schedule starts nothing.</Notice>
        ) : null}
        {autoRun.next_at.length > 0 ? (
          <table className="data-list">
            <caption>Next runs</caption>
            <thead>
              <tr>
                <th scope="col">Your time</th>
                <th scope="col">UTC</th>
              </tr>
            </thead>
            <tbody>
              {autoRun.next_at.map((at) => (
                <tr key={at}>
                  <th scope="row">
                    <Time value={at} isExact />
                  </th>
                  <td data-label="UTC" className="muted">
                    {utcText(at)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : (
          <p className="muted">It does not run on a schedule.</p>
        )}
      </div>
    </Section>
  )
}
