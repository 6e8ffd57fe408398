import type { WorkflowDetailOut } from '@workflow-service/contract'
import { call, newId, mutate } from '../../api/index.ts'
import { type Action, Button } from '../../components/button.tsx'
import { askToConfirm, openForm } from '../../components/dialog.tsx'
import { Checkbox, TextAreaField, TextField } from '../../components/fields.tsx'
import { editFormOptions } from '../../components/form.tsx'
import { Menu } from '../../components/menu.tsx'
import { EmptyState, Section } from '../../components/page.tsx'
import { StatusBadge } from '../../components/status-and-time.tsx'
import { KeyValueList } from '../../components/values.tsx'
import { NEW_TRIGGER } from './readiness-panel.tsx'
import { useWorkflow } from './use-workflow.ts'

type Trigger = WorkflowDetailOut['triggers'][number]

const FIRED_BY_API = 'People, programs and the schedule'

const isApi = ({ trigger_source: kind }: Trigger) => kind.slug === NEW_TRIGGER.trigger_source.slug
const kindText = ({ slug, name }: Trigger['trigger_source']) => (name === slug ? slug : `${name} (${slug})`)
const titleOf = (trigger: Trigger) => trigger.name || (isApi(trigger) ? FIRED_BY_API : kindText(trigger.trigger_source))

export function WorkflowTriggersPage() {
  const { id, triggers } = useWorkflow()
  const add: Action = { label: 'Add trigger', icon: 'plus', onClick: () => openTrigger(id) }
  return (
    <Section
      title="Triggers"
      intro="What may start the workflow. A start uses the oldest active trigger for people, programs and the schedule."
      actions={triggers.length > 0 ? <Button {...add} /> : null}
    >
      {triggers.length === 0 ? (
        <EmptyState
          icon="run"
          title="No trigger yet"
          text="Until there is one, neither people nor programs can start the workflow."
          action={{ ...add, variant: 'primary' }}
        />
      ) : null}
      {triggers.map((trigger) => (
        <TriggerCard key={trigger.id} workflowId={id} trigger={trigger} />
      ))}
    </Section>
  )
}

function TriggerCard({ workflowId, trigger }: { workflowId: string; trigger: Trigger }) {
  const { id, is_active: isActive, ...values } = trigger
  const params = { workflow_id: workflowId, trigger_id: id }
  const title = titleOf(trigger)
  const toggle = () => mutate('saveTrigger', { params, body: { ...values, is_active: !isActive } })
  const remove = () =>
    askToConfirm({
      title: `Delete ${title}`,
      text: 'It fires no more. To stop it for a time, pause it instead.',
      action: 'Delete trigger',
      onConfirm: () => mutate('deleteTrigger', { params, query: { version: trigger.version } }),
      done: 'Deleted.',
    })
  return (
    <article className="card stack" aria-label={title}>
      <header className="row">
        <h3>{title}</h3>
        <StatusBadge status={isActive ? 'active' : 'closed'}>{isActive ? 'Active' : 'Paused'}</StatusBadge>
        <div className="actions at-end">
          <Button label="Edit" onClick={() => openTrigger(workflowId, trigger)} aria-label={`Edit ${title}`} />
          <Button
            {...(isActive ? { label: 'Pause', done: 'Paused.' } : { label: 'Resume', done: 'Resumed.' })}
            onClick={toggle}
            aria-label={`${isActive ? 'Pause' : 'Resume'} ${title}`}
          />
          <Menu
            label={`More actions for ${title}`}
            items={[{ label: 'Delete', icon: 'trash', variant: 'danger', onClick: remove }]}
          />
        </div>
      </header>
      <KeyValueList
        items={{
          'Started by': isApi(trigger) ? FIRED_BY_API : null,
          'Input message': trigger.input_message || null,
        }}
      />
      <KeptForOthers trigger={trigger} />
    </article>
  )
}

/** What a manifest or the API gave, and nothing here reads. */
function KeptForOthers({ trigger }: { trigger: Trigger }) {
  const kept = {
    'Started by': isApi(trigger) ? null : kindText(trigger.trigger_source),
    Events: namesOf(trigger.events),
    Filters: trigger.filters ? <code>{JSON.stringify(trigger.filters)}</code> : null,
    'Subagent sources': namesOf(trigger.subagent_sources),
  }
  if (Object.values(kept).every((value) => value === null)) return null
  return (
    <>
      <p className="muted">Kept for other systems; this service does not evaluate it:</p>
      <KeyValueList items={kept} />
    </>
  )
}

const namesOf = (list: readonly { name: string }[]) => list.map(({ name }) => name).join(', ') || null

const valuesOf = (trigger: Trigger | undefined) => ({
  name: trigger?.name ?? '',
  input_message: trigger?.input_message ?? '',
  is_active: trigger?.is_active ?? true,
})

/** Edits a trigger, or a new one. What is kept for other systems stays as it is stored. */
function openTrigger(workflowId: string, trigger?: Trigger) {
  const id = trigger?.id ?? newId()
  const find = ({ triggers }: WorkflowDetailOut) => triggers.find((each) => each.id === id)
  openForm({
    ...editFormOptions(trigger, valuesOf, find),
    title: trigger ? `Edit ${titleOf(trigger)}` : 'New trigger',
    className: 'wide',
    action: trigger ? 'Save' : 'Add trigger',
    async save(values, version) {
      const params = { workflow_id: workflowId, trigger_id: id }
      // Read now: a manifest may have changed it since the dialog was opened. One that was deleted is made again.
      const { id: _, ...stored } = (trigger && find(await call('getWorkflow', { params }))) ??
        trigger ?? { id, ...NEW_TRIGGER }
      await mutate('saveTrigger', { params, body: { ...stored, ...values, version: version || null } })
    },
    fields: ({ field }) => (
      <>
        <TextField hint="May be empty." {...field('name', 'Name')} />
        <TextAreaField
          rows={2}
          hint="Precedes the text that the workflow is started with."
          {...field('input_message', 'Input message')}
        />
        <Checkbox {...field('is_active', 'Active')} />
        {trigger ? <KeptForOthers trigger={trigger} /> : null}
      </>
    ),
  })
}
