import type { WorkflowDetailOut } from '@workflow-service/contract'
import { mutate } from '../../api/index.ts'
import { Table } from '../../components/data-list.tsx'
import { Checkbox, SelectField } from '../../components/fields.tsx'
import { editFormOptions, Form, useForm } from '../../components/form.tsx'
import { Notice, Section } from '../../components/page.tsx'
import { Time, utcText } from '../../components/status-and-time.tsx'
import { useWorkflow } from './workflow-layout.tsx'

const FREQUENCIES = { hourly: 'Every hour', daily: 'Every day', weekly: 'Every week', monthly: 'Every month' }

const valuesOf = ({ enabled, frequency }: WorkflowDetailOut['auto_run']) => ({
  enabled: enabled ?? false,
  frequency: frequency ?? ('daily' as const),
})

export function WorkflowSchedulePage() {
  const { id, auto_run: autoRun, is_active: isActive } = useWorkflow()
  const form = useForm({
    ...editFormOptions(autoRun, valuesOf, (current: WorkflowDetailOut) => current.auto_run),
    save: async (values, version) =>
      (await mutate('saveAutoRun', { params: { workflow_id: id }, body: { ...values, version } })).auto_run,
  })
  return (
    <Section
      title="Schedule"
      intro="Starts the workflow again and again, each time in a new session and without a text. It recurs at the minute at which it was switched on."
      isNarrow
    >
      <Form form={form} action="Save" canReset>
        <Checkbox {...form.field('enabled', 'Run on a schedule')} />
        <SelectField options={FREQUENCIES} disabled={!form.values.enabled} {...form.field('frequency', 'How often')} />
      </Form>
      {autoRun.enabled && !isActive ? (
        <Notice kind="warning">The workflow is switched off, so its schedule starts nothing.</Notice>
      ) : null}
      {autoRun.next_at.length > 0 ? (
        <Table
          label="Next runs"
          isLabelShown
          rows={autoRun.next_at.map((at) => ({ id: at }))}
          columns={[
            { header: 'Your time', cell: ({ id: at }) => <Time value={at} isExact /> },
            { header: 'UTC', cell: ({ id: at }) => <span className="muted">{utcText(at)}</span> },
          ]}
        />
      ) : (
        <p className="muted">It does not run on a schedule.</p>
      )}
    </Section>
  )
}
