import { useNavigate } from '@tanstack/react-router'
import type { WorkflowDetailOut } from '@workflow-service/contract'
import { useState } from 'react'
import { mutate, newId } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { Checkbox, SelectField, TextField } from '../../components/fields.tsx'
import { editFormOptions, Form, useForm } from '../../components/form.tsx'
import { Notice, Section } from '../../components/page.tsx'
import { Time } from '../../components/status-and-time.tsx'
import { Table } from '../../components/table.tsx'
import { linkTo } from '../../components/thing-link.tsx'
import { useWorkflow } from './use-workflow.ts'

type Schedule = WorkflowDetailOut['auto_run']

const FREQUENCIES = { hourly: 'Every hour', daily: 'Every day', weekly: 'Every week', monthly: 'Every month' }
const WEEKDAYS = Object.fromEntries(
  ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'].map((name, index) => [
    String(index + 1),
    name,
  ]),
)
const LAST_DAY = '31'
const DAYS = {
  ...Object.fromEntries(Array.from({ length: 28 }, (_, index) => [String(index + 1), String(index + 1)])),
  [LAST_DAY]: 'The last day',
}
const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone
const ZONES = Object.fromEntries(
  [...new Set(['UTC', HERE, ...Intl.supportedValuesOf('timeZone')])].map((zone) => [zone, zone.replaceAll('_', ' ')]),
)

const valuesOf = ({ enabled, frequency, timing }: Schedule) => ({
  enabled: enabled ?? false,
  frequency: frequency ?? ('daily' as const),
  // A schedule without a timing keeps its minute until a person gives it a time.
  time: timing?.time ?? (frequency && enabled ? '' : '09:00'),
  weekday: String(timing?.day && timing.day <= 7 ? timing.day : 1),
  day: String(timing?.day ?? 1),
  zone: timing?.time_zone ?? HERE,
})

/** The timing of the form; null for a schedule that has none and gets none. */
function timingOf({ frequency, time, weekday, day, zone }: ReturnType<typeof valuesOf>): Schedule['timing'] {
  if (time === '') return null
  const days = { hourly: null, daily: null, weekly: Number(weekday), monthly: Number(day) }
  return { time, day: days[frequency], time_zone: zone }
}

export function WorkflowSchedulePage() {
  const { id, auto_run: autoRun, is_active: isActive } = useWorkflow()
  const navigate = useNavigate()
  const params = { workflow_id: id }
  const form = useForm({
    ...editFormOptions(autoRun, valuesOf, (current: WorkflowDetailOut) => current.auto_run),
    save: async (values, version) => {
      const { enabled, frequency } = values
      const body = { enabled, frequency, timing: timingOf(values), version }
      return (await mutate('saveAutoRun', { params, body })).auto_run
    },
  })
  // Repeated with the same id, because its response was lost, it starts nothing.
  const [startId, setStartId] = useState(newId)
  const startNow = async () => {
    const { run_id: runId } = await mutate('startScheduled', { params, body: { id: startId } })
    setStartId(newId())
    await navigate(linkTo('run', runId))
  }
  const { enabled, frequency } = form.values
  const off = { disabled: !enabled }
  const { time_zone: ofTiming = HERE } = autoRun.timing ?? {}
  const zone = ofTiming === HERE ? 'UTC' : ofTiming
  return (
    <Section
      title="Schedule"
      intro="Starts the workflow again and again, each time in a new session and without a text."
      actions={isActive ? <Button label="Run now as scheduled" icon="run" onClick={startNow} /> : null}
    >
      <div className="two-columns">
        <Form form={form} action="Save" canReset>
          <Checkbox {...form.field('enabled', 'Run on a schedule')} />
          <div className="columns">
            <SelectField options={FREQUENCIES} {...off} {...form.field('frequency', 'How often')} />
            {frequency === 'weekly' ? (
              <SelectField options={WEEKDAYS} {...off} {...form.field('weekday', 'On')} />
            ) : frequency === 'monthly' ? (
              <SelectField options={DAYS} {...off} {...form.field('day', 'Day of the month')} />
            ) : null}
          </div>
          <div className="columns">
            <TextField
              type="time"
              hint={frequency === 'hourly' ? 'Only its minute counts.' : undefined}
              {...off}
              {...form.field('time', 'Time')}
            />
            <SelectField options={ZONES} {...off} {...form.field('zone', 'Time zone')} />
          </div>
          {enabled && form.values.time === '' ? (
            <p className="muted">Without a time, it recurs in UTC at the minute at which it was switched on.</p>
          ) : null}
        </Form>
        <div className="stack">
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
                {
                  header: zone,
                  cell: ({ id: at }) => <span className="muted">{timeIn(zone, at)}</span>,
                  isOptional: true,
                },
              ]}
            />
          ) : (
            <p className="muted">It does not run on a schedule.</p>
          )}
        </div>
      </div>
    </Section>
  )
}

const timeIn = (timeZone: string, at: string) =>
  new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short', timeZone }).format(new Date(at))
