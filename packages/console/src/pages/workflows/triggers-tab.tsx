import type { WorkflowDetailOut } from '@workflow-service/contract'
import { WORKFLOW_TEXT_MAX_LENGTH } from '@workflow-service/contract/limits'
import { useState } from 'react'
import { AppError } from '../../api/call.ts'
import { newId } from '../../api/new-id.ts'
import { useWrite } from '../../api/queries.ts'
import { Button } from '../../components/button.tsx'
import { ConfirmDialog, Dialog } from '../../components/dialog.tsx'
import { Checkbox, SelectField, TextAreaField, TextField } from '../../components/fields.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { KeyValueList } from '../../components/key-value.tsx'
import { Menu } from '../../components/menu.tsx'
import { Section } from '../../components/page.tsx'
import { parseJson } from '../../components/parse-json.ts'
import { RowsField } from '../../components/rows-field.tsx'
import { EmptyState } from '../../components/states.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { toast, tryIt } from '../../components/toast.tsx'
import { useWorkflow } from './use-workflow.ts'

type Trigger = WorkflowDetailOut['triggers'][number]
type Open = { kind: 'edit' | 'delete'; trigger: Trigger } | { kind: 'new' }

const titleOf = (trigger: Trigger) => trigger.name || `Trigger by ${trigger.trigger_source.name}`

export function WorkflowTriggersPage() {
  const workflow = useWorkflow()
  const [open, setOpen] = useState<Open>()
  const close = () => setOpen(undefined)
  const add = (
    <Button
      icon="plus"
      variant={workflow.triggers.length > 0 ? 'secondary' : 'primary'}
      onClick={() => setOpen({ kind: 'new' })}
    >
      Add trigger
    </Button>
  )
  return (
    <>
      <Section
        title="Triggers"
        intro="What starts the workflow. A call of the public API fires the oldest active trigger of the source “api”."
        actions={workflow.triggers.length > 0 ? add : null}
      >
        {workflow.triggers.length === 0 ? (
          <EmptyState icon="run" title="No trigger yet" action={add}>
            Without an active API trigger the workflow cannot be started, neither by the API nor by you.
          </EmptyState>
        ) : null}
        {workflow.triggers.map((trigger) => (
          <TriggerCard key={trigger.id} workflow={workflow} trigger={trigger} onOpen={setOpen} />
        ))}
      </Section>
      {open?.kind === 'new' ? <TriggerDialog workflow={workflow} onClose={close} /> : null}
      {open?.kind === 'edit' ? <TriggerDialog workflow={workflow} trigger={open.trigger} onClose={close} /> : null}
      {open?.kind === 'delete' ? <DeleteTrigger workflow={workflow} trigger={open.trigger} onClose={close} /> : null}
    </>
  )
}

interface TriggerProps {
  workflow: WorkflowDetailOut
  trigger: Trigger
}

function TriggerCard({ workflow, trigger, onOpen }: TriggerProps & { onOpen: (open: Open) => void }) {
  const write = useWrite('saveTrigger')
  const { id, ...values } = trigger
  const toggle = () =>
    void tryIt(async () => {
      const body = { ...values, is_active: !trigger.is_active }
      await write.mutateAsync({ params: { workflow_id: workflow.id, trigger_id: id }, body })
      toast(body.is_active ? 'Resumed.' : 'Paused.')
    })
  return (
    <article className="card stack" aria-label={titleOf(trigger)}>
      <header className="row">
        <h3>{titleOf(trigger)}</h3>
        <StatusBadge status={trigger.is_active ? 'on' : 'off'}>{trigger.is_active ? 'Active' : 'Paused'}</StatusBadge>
        <div className="actions at-end">
          <Button onClick={() => onOpen({ kind: 'edit', trigger })} aria-label={`Edit ${titleOf(trigger)}`}>
            Edit
          </Button>
          <Button
            isBusy={write.isPending}
            onClick={toggle}
            aria-label={`${trigger.is_active ? 'Pause' : 'Resume'} ${titleOf(trigger)}`}
          >
            {trigger.is_active ? 'Pause' : 'Resume'}
          </Button>
          <Menu
            label={`More actions for ${titleOf(trigger)}`}
            groups={[
              [
                {
                  label: 'Delete',
                  icon: 'trash',
                  isDangerous: true,
                  onSelect: () => onOpen({ kind: 'delete', trigger }),
                },
              ],
            ]}
          />
        </div>
      </header>
      <KeyValueList
        items={[
          ['Fired by', `${trigger.trigger_source.name} (${trigger.trigger_source.slug})`],
          ['Events', trigger.events.map(({ name }) => name).join(', ') || null],
          ['Filters', trigger.filters ? <code>{JSON.stringify(trigger.filters)}</code> : null],
          ['Input message', trigger.input_message || null],
          ['Subagent sources', trigger.subagent_sources.map(({ name }) => name).join(', ') || null],
        ]}
      />
    </article>
  )
}

const sourceOf = (trigger: Trigger | undefined): 'api' | 'other' =>
  trigger && trigger.trigger_source.slug !== 'api' ? 'other' : 'api'

const valuesOf = (trigger: Trigger | undefined) => ({
  name: trigger?.name ?? '',
  is_active: trigger?.is_active ?? true,
  source: sourceOf(trigger),
  slug: trigger?.trigger_source.slug ?? 'api',
  source_name: trigger?.trigger_source.name ?? 'API',
  events: trigger?.events.map(({ slug, name }) => ({ slug, name })) ?? [],
  filters: trigger?.filters ? JSON.stringify(trigger.filters, null, 2) : '',
  input_message: trigger?.input_message ?? '',
  subagent_sources: trigger?.subagent_sources.map(({ id, name, type }) => ({ id: id ?? '', name, type })) ?? [],
})

function TriggerDialog({
  workflow,
  trigger,
  onClose,
}: Omit<TriggerProps, 'trigger'> & { trigger?: Trigger; onClose: () => void }) {
  const [id] = useState(() => trigger?.id ?? newId())
  const write = useWrite('saveTrigger')
  const form = useForm({
    values: valuesOf(trigger),
    version: trigger?.version ?? '',
    fromCurrent: (current: WorkflowDetailOut) => {
      const now = current.triggers.find((each) => each.id === id)
      return { values: valuesOf(now), version: now?.version ?? '' }
    },
    async save(values, version) {
      const filters = values.filters.trim() === '' ? { value: null } : parseJson(values.filters)
      if (filters.error || typeof filters.value !== 'object' || Array.isArray(filters.value)) {
        const message = filters.error ?? 'Enter a JSON object, such as {"region": "EU"}.'
        throw new AppError(422, {
          code: 'validation_error',
          message,
          details: [{ field: 'filters', code: '', message }],
        })
      }
      await write.mutateAsync({
        params: { workflow_id: workflow.id, trigger_id: id },
        body: {
          name: values.name,
          is_active: values.is_active,
          trigger_source:
            values.source === 'api' ? { slug: 'api', name: 'API' } : { slug: values.slug, name: values.source_name },
          events: values.events,
          filters: filters.value as Record<string, unknown> | null,
          input_message: values.input_message,
          subagent_sources: values.subagent_sources.map((source) => ({ ...source, id: source.id || null })),
          version: version || null,
        },
      })
      onClose()
    },
  })
  return (
    <Dialog
      title={trigger ? `Edit ${titleOf(trigger)}` : 'New trigger'}
      className="wide"
      onClose={form.closing(onClose)}
    >
      <Form form={form} action={trigger ? 'Save' : 'Add trigger'}>
        <div className="columns">
          <TextField label="Name" hint="May be empty." {...form.field('name')} />
          <SelectField
            label="Fired by"
            options={[
              ['api', 'API, also the schedule and people'],
              ['other', 'Another source'],
            ]}
            {...form.field('source')}
          />
        </div>
        {form.values.source === 'other' ? (
          <div className="columns">
            <TextField label="Slug of the source" hint="For machines, such as street." {...form.field('slug')} />
            <TextField label="Name of the source" {...form.field('source_name')} />
          </div>
        ) : null}
        <TextAreaField
          label="Input message"
          rows={2}
          maxLength={WORKFLOW_TEXT_MAX_LENGTH}
          hint="Precedes the text that the workflow is started with."
          {...form.field('input_message')}
        />
        <RowsField
          label="Events"
          rowLabel="event"
          columns={[
            ['slug', 'Slug'],
            ['name', 'Name'],
          ]}
          {...form.field('events')}
        />
        <TextAreaField
          label="Filters"
          isCode
          rows={3}
          placeholder={'{"region": "EU"}'}
          hint="Extra conditions as a JSON object; empty for none."
          {...form.field('filters')}
          error={
            form.field('filters').error ??
            (form.values.filters.trim() ? parseJson(form.values.filters).error : undefined)
          }
        />
        <RowsField
          label="Subagent sources"
          rowLabel="subagent source"
          columns={[
            ['name', 'Name'],
            ['type', 'Type'],
            ['id', 'Id, empty for platform_internal'],
          ]}
          {...form.field('subagent_sources')}
        />
        <Checkbox label="Active" {...form.field('is_active')} />
      </Form>
    </Dialog>
  )
}

function DeleteTrigger({ workflow, trigger, onClose }: TriggerProps & { onClose: () => void }) {
  const write = useWrite('deleteTrigger')
  return (
    <ConfirmDialog
      title={`Delete ${titleOf(trigger)}`}
      action="Delete trigger"
      onClose={onClose}
      onConfirm={async () => {
        const params = { workflow_id: workflow.id, trigger_id: trigger.id }
        await write.mutateAsync({ params, query: { version: trigger.version } })
      }}
    >
      <p>It fires no more. To stop it for a time, pause it instead.</p>
    </ConfirmDialog>
  )
}
