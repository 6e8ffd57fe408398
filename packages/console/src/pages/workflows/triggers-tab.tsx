import type { WorkflowDetailOut } from '@workflow-service/contract'
import { WORKFLOW_TEXT_MAX_LENGTH } from '@workflow-service/contract/limits'
import { invalid, newId, write } from '../../api/index.ts'
import { type Action, Button, IconButton } from '../../components/button.tsx'
import { askToConfirm, openForm } from '../../components/dialog.tsx'
import {
  type Bound,
  Checkbox,
  type Choices,
  entriesOf,
  FieldText,
  SelectField,
  TextAreaField,
  TextField,
} from '../../components/fields.tsx'
import { editing, type FormState } from '../../components/form.tsx'
import { Menu } from '../../components/menu.tsx'
import { EmptyState, Section } from '../../components/page.tsx'
import { parseJson } from '../../components/parse-json.ts'
import { StatusBadge } from '../../components/status-and-time.tsx'
import { KeyValueList } from '../../components/values.tsx'
import { useWorkflow } from './workflow-layout.tsx'

type Trigger = WorkflowDetailOut['triggers'][number]

const API = { slug: 'api', name: 'API' }
const SOURCES = { api: 'People, programs and the schedule', other: 'Another source' }
const EVENT = { slug: 'Slug', name: 'Name' }
const SUBAGENT_SOURCE = { name: 'Name', type: 'Type', id: 'Id, empty for platform_internal' }

const firedBy = ({ slug, name }: Trigger['trigger_source']) => (slug === 'api' ? SOURCES.api : `${name} (${slug})`)
const titleOf = ({ name, trigger_source: source }: Trigger) => name || firedBy(source)

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
  const { id, is_active: isActive, trigger_source: source, ...values } = trigger
  const params = { workflow_id: workflowId, trigger_id: id }
  const title = titleOf(trigger)
  const toggle = () =>
    write('saveTrigger', { params, body: { ...values, trigger_source: source, is_active: !isActive } })
  const remove = () =>
    askToConfirm({
      title: `Delete ${title}`,
      text: 'It fires no more. To stop it for a time, pause it instead.',
      action: 'Delete trigger',
      onConfirm: () => write('deleteTrigger', { params, query: { version: trigger.version } }),
    })
  return (
    <article className="card stack" aria-label={title}>
      <header className="row">
        <h3>{title}</h3>
        <StatusBadge status={isActive ? 'on' : 'off'}>{isActive ? 'Active' : 'Paused'}</StatusBadge>
        <div className="actions at-end">
          <Button label="Edit" onClick={() => openTrigger(workflowId, trigger)} aria-label={`Edit ${title}`} />
          <Button
            {...(isActive ? { label: 'Pause', done: 'Paused.' } : { label: 'Resume', done: 'Resumed.' })}
            onClick={toggle}
            aria-label={`${isActive ? 'Pause' : 'Resume'} ${title}`}
          />
          <Menu
            label={`More actions for ${title}`}
            groups={[[{ label: 'Delete', icon: 'trash', variant: 'danger', onClick: remove }]]}
          />
        </div>
      </header>
      <KeyValueList
        items={{
          'Started by': firedBy(source),
          Events: namesOf(trigger.events),
          Filters: trigger.filters ? <code>{JSON.stringify(trigger.filters)}</code> : null,
          'Input message': trigger.input_message || null,
          'Subagent sources': namesOf(trigger.subagent_sources),
        }}
      />
    </article>
  )
}

const namesOf = (list: readonly { name: string }[]) => list.map(({ name }) => name).join(', ') || null

const valuesOf = (trigger: Trigger | undefined) => ({
  name: trigger?.name ?? '',
  is_active: trigger?.is_active ?? true,
  source: (trigger?.trigger_source ?? API).slug === 'api' ? ('api' as const) : ('other' as const),
  slug: trigger?.trigger_source.slug ?? '',
  source_name: trigger?.trigger_source.name ?? '',
  events: trigger?.events.map(({ slug, name }) => ({ slug, name })) ?? [],
  filters: trigger?.filters ? JSON.stringify(trigger.filters, null, 2) : '',
  input_message: trigger?.input_message ?? '',
  subagent_sources: trigger?.subagent_sources.map(({ id, name, type }) => ({ id: id ?? '', name, type })) ?? [],
})

/** Reads the text of the filters: a JSON object, or nothing. */
function readFilters(text: string): Record<string, unknown> | null {
  if (text.trim() === '') return null
  const { value, error } = parseJson(text)
  if (!error && typeof value === 'object' && !Array.isArray(value)) return value as Record<string, unknown> | null
  throw invalid('filters', error ?? 'Enter a JSON object, such as {"region": "EU"}.')
}

/** Edits a trigger, or a new one. */
function openTrigger(workflowId: string, trigger?: Trigger) {
  const id = trigger?.id ?? newId()
  openForm({
    ...editing(trigger, valuesOf, ({ triggers }: WorkflowDetailOut) => triggers.find((each) => each.id === id)),
    title: trigger ? `Edit ${titleOf(trigger)}` : 'New trigger',
    className: 'wide',
    action: trigger ? 'Save' : 'Add trigger',
    async save({ source, slug, source_name: sourceName, ...values }, version) {
      const body = {
        ...values,
        trigger_source: source === 'api' ? API : { slug, name: sourceName },
        filters: readFilters(values.filters),
        subagent_sources: values.subagent_sources.map((each) => ({ ...each, id: each.id || null })),
        version: version || null,
      }
      await write('saveTrigger', { params: { workflow_id: workflowId, trigger_id: id }, body })
    },
    fields: (form) => <TriggerFields form={form} />,
  })
}

function TriggerFields({ form: { values, field } }: { form: FormState<ReturnType<typeof valuesOf>> }) {
  const filters = field('filters', 'Filters')
  return (
    <>
      <div className="columns">
        <TextField hint="May be empty." {...field('name', 'Name')} />
        <SelectField options={SOURCES} {...field('source', 'Started by')} />
      </div>
      {values.source === 'other' ? (
        <div className="columns">
          <TextField hint="For machines, such as street." {...field('slug', 'Slug of the source')} />
          <TextField {...field('source_name', 'Name of the source')} />
        </div>
      ) : null}
      <TextAreaField
        rows={2}
        maxLength={WORKFLOW_TEXT_MAX_LENGTH}
        hint="Precedes the text that the workflow is started with."
        {...field('input_message', 'Input message')}
      />
      <RowsField rowLabel="event" columns={EVENT} {...field('events', 'Events')} />
      <TextAreaField
        isCode
        placeholder={'{"region": "EU"}'}
        hint="Extra conditions as a JSON object; empty for none."
        {...filters}
        error={filters.error ?? (values.filters.trim() ? parseJson(values.filters).error : undefined)}
      />
      <RowsField
        rowLabel="subagent source"
        columns={SUBAGENT_SOURCE}
        {...field('subagent_sources', 'Subagent sources')}
      />
      <Checkbox {...field('is_active', 'Active')} />
    </>
  )
}

/** Rows of short texts, such as the events of a trigger. */
function RowsField<Name extends string>(
  props: Bound<Record<Name, string>[]> & {
    /** Names one row: `event`. */
    rowLabel: string
    columns: Choices<Name>
  },
) {
  const { label, rowLabel, columns, value, onValue, error } = props
  const names = entriesOf(columns)
  const empty = Object.fromEntries(names.map(([name]) => [name, ''])) as Record<Name, string>
  const change = (at: number, name: Name, text: string) =>
    onValue(value.map((row, index) => (index === at ? { ...row, [name]: text } : row)))
  return (
    <fieldset className="rows-field">
      <legend>{label}</legend>
      {value.map((row: Record<string, string>, index) => (
        // Rows have no identity but their place.
        // oxlint-disable-next-line react/no-array-index-key
        <div key={index}>
          {names.map(([name, text]) => (
            <input
              key={name}
              className="input"
              aria-label={`${text} of ${rowLabel} ${index + 1}`}
              placeholder={text}
              value={row[name]}
              onChange={(event) => change(index, name, event.target.value)}
            />
          ))}
          <IconButton
            icon="close"
            label={`Remove ${rowLabel} ${index + 1}`}
            onClick={() => onValue(value.filter((_, at) => at !== index))}
          />
        </div>
      ))}
      <Button label={`Add ${rowLabel}`} className="small" icon="plus" onClick={() => onValue([...value, empty])} />
      <FieldText error={error} />
    </fieldset>
  )
}
