import type { WorkflowDetailOut, WorkflowReadOut } from '@workflow-service/contract'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { readDescription } from '@workflow-service/contract/check-description'
import { type KeyboardEvent, type ReactNode, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react'
import { AppError, call, newId, useRead, mutate } from '../../api/index.ts'
import { announce } from '../../components/toast.ts'
import { type Bound, RadioGroup, TextAreaField, TextField } from '../../components/fields.tsx'
import { editFormOptions, Form, type FormState, useForm } from '../../components/form.tsx'
import { Notice, Page } from '../../components/page.tsx'
import { placePopup } from '../../components/place-popup.ts'
import { fold } from '../../components/text.ts'
import { ThingLink, tryLink } from '../../components/thing-link.tsx'
import { useOptions } from '../../components/use-options.tsx'
import { beyondNames, findRules, ReadinessPanel, RulesNote, useIsBuiltIn, WriteRuleLink } from './readiness-panel.tsx'
import { Insertable } from './rules-editor.tsx'
import { useWorkflow } from './use-workflow.ts'
import { type Scope, SCOPES } from './workflows-page.tsx'

const valuesOf = ({ name, description, scope }: WorkflowDetailOut) => ({ name, description, scope: scope as Scope })
type Values = ReturnType<typeof valuesOf>

export function WorkflowEditPage() {
  const workflow = useWorkflow()
  const form = useForm({
    ...editFormOptions(workflow, valuesOf),
    save: (values, version) =>
      mutate('saveWorkflow', { params: { workflow_id: workflow.id }, body: { ...values, version } }),
  })
  return (
    <div className="with-side">
      <WorkflowForm form={form} action="Save" workflow={workflow} />
      <ReadinessPanel action={{ label: 'Try it', icon: 'run', variant: 'primary', link: tryLink(workflow.id) }} />
    </div>
  )
}

export function NewWorkflowPage() {
  const navigate = useNavigate()
  const { source } = useSearch({ strict: false })
  const [id] = useState(newId)
  const form = useForm<Values>({
    values: { name: '', description: source ? `Send the text to ${source}.` : '', scope: 'company_wide' },
    savedText: null,
    async save(values) {
      await mutate('createWorkflow', { body: { id, ...values } }).catch(async (error) => {
        if (!(error instanceof AppError && error.code === 'id_taken')) throw error
        // The response to an earlier attempt did not arrive: what was typed since then is an edit.
        const params = { workflow_id: id }
        const { version } = await call('getWorkflow', { params })
        await mutate('saveWorkflow', { params, body: { ...values, version } })
      })
      await navigate(tryLink(id))
    },
  })
  return (
    <Page
      title="New workflow"
      back={['Workflows', { to: '/workflows' }]}
      intro="On the next page you switch it on and try it."
    >
      <div className="with-side">
        <WorkflowForm form={form} action="Create workflow" />
        <NameableSources form={form} />
      </div>
    </Page>
  )
}

const SHOWN_SOURCES = 20

/** The sources that the task can name. A click writes a name at its end. */
function NameableSources({ form }: { form: FormState<Values> }) {
  const { description } = form.values
  const sources = useRead('listWebhookSources').data?.data
  if (!sources) return null
  const write = (name: string) =>
    form
      .field('description', 'Task')
      .onValue(description.trim() === '' ? `Send the text to ${name}.` : `${description} ${name}`)
  return (
    <aside className="card stack">
      {sources.length > 0 ? (
        <Insertable
          heading="h2"
          title="Webhook sources to name in the task"
          names={sources.slice(0, SHOWN_SOURCES).map(({ name }) => name)}
          onInsert={write}
        />
      ) : (
        <p className="muted">
          A workflow sends to webhook sources. There is none yet: <Link to="/sources/new">make one first</Link>, or
          start with the task.
        </p>
      )}
    </aside>
  )
}

const SCOPE_HINTS = {
  company_wide: 'Everyone in your organization sees it.',
  only_me: 'The people listed under People see it, and admins.',
}

const HINT =
  'Such as “An order came in. Send it to Order intake.” The built-in agent reads sentences of this form; a model reads any text. The agent sends only to sources that the task names.'

/**
 * Characters of a description that are checked within 50 ms after each key; a longer one is checked when it is saved.
 */
const CHECKED_MAX_LENGTH = 10_000

function WorkflowForm(props: { form: FormState<Values>; action: string; workflow?: WorkflowReadOut }) {
  const { form, action, workflow } = props
  const rules = workflow && findRules(workflow)
  const { data } = useRead('listWebhookSources')
  const sources = useMemo(() => data?.data ?? [], [data])
  const lookups = useRead('listLookups').data?.data ?? []
  const isBuiltIn = useIsBuiltIn(workflow)
  const typed = useDeferredValue(form.values.description)
  const isChecked = !rules && typed.length <= CHECKED_MAX_LENGTH
  const { named, rulesNeeded } = useMemo(
    () => readDescription(isChecked ? typed : '', sources),
    [isChecked, typed, sources],
  )
  const warnings = beyondNames(isChecked ? (rulesNeeded && isBuiltIn ? [rulesNeeded] : []) : (workflow?.warnings ?? []))
  const warning = warnings[0]?.message
  useEffect(() => {
    if (warning) announce(warning)
  }, [warning])
  return (
    <Form form={form} action={action} canReset={action === 'Save'}>
      <TextField required placeholder="Forward shop orders" {...form.field('name', 'Name')} />
      <DescriptionField
        names={[...sources, ...lookups].map(({ name }) => name)}
        hint={rules ? <RulesNote workflowId={workflow.id} rules={rules} /> : HINT}
        {...form.field('description', 'Task')}
      >
        {named.length > 0 ? (
          <p className="row named">
            <span className="muted">Sends to:</span>
            {named.map(({ id, name }) => (
              <ThingLink key={id} kind="webhook_source" id={id} name={name} />
            ))}
          </p>
        ) : null}
      </DescriptionField>
      {warnings.map(({ code, message }) => (
        <Notice key={message} kind="warning">
          {message}. {workflow && code === 'rules_needed' ? <WriteRuleLink workflowId={workflow.id} /> : null}
        </Notice>
      ))}
      <RadioGroup options={SCOPES} hints={SCOPE_HINTS} {...form.field('scope', 'Who has access')} />
    </Form>
  )
}

const MAX_SUGGESTIONS = 6
const MAX_TYPED = 100

/** The names that begin with what is typed before the caret, with the number of typed characters. */
function suggest(before: string, all: readonly string[]): { name: string; typed: number }[] {
  // Words and their followers up to the caret, the longest first. A folded text may have another length.
  const ends = [...before.slice(-MAX_TYPED).matchAll(/(?<![\p{L}\p{M}\p{N}_])(?=(..+)$)/gsu)].map(([, end = '']) => end)
  const folded = ends.map(fold)
  return all.flatMap((name) => {
    const start = fold(name)
    const end = ends[folded.findIndex((each) => each.length < start.length && start.startsWith(each))]
    return end === undefined ? [] : [{ name, typed: end.length }]
  })
}

/** The agent's task. Completes the names of webhook sources and look-ups as they are typed. */
function DescriptionField({ names, children, ...props }: Bound<string> & { names: string[]; children: ReactNode }) {
  const area = useRef<HTMLTextAreaElement>(null)
  const popup = useRef<HTMLUListElement>(null)
  const [before, setBefore] = useState('')
  const found = suggest(before, names).slice(0, MAX_SUGGESTIONS)
  const options = useOptions(
    found,
    ({ name, typed }) => {
      const element = area.current
      if (!element) return
      const start = element.selectionStart - typed
      props.onValue(element.value.slice(0, start) + name + element.value.slice(start + typed))
      setBefore('')
      requestAnimationFrame(() => {
        element.focus()
        element.setSelectionRange(start + name.length, start + name.length)
      })
    },
    -1,
  )
  const isOpen = found.length > 0
  // After each change of the text: the field grows with it.
  useEffect(() => {
    const list = popup.current!
    if (!isOpen) return list.hidePopover()
    list.showPopover()
    placePopup(list, area.current!, 'start')
  })

  const track = () => {
    const { selectionStart = 0, selectionEnd = 0, value = '' } = area.current ?? {}
    setBefore(selectionStart === selectionEnd ? value.slice(0, selectionStart) : '')
    options.restart()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (!isOpen || event.metaKey || event.ctrlKey || event.altKey || event.shiftKey) return
    if (options.onKey(event, ['Enter', 'Tab']) || event.key !== 'Escape') return
    setBefore('')
    event.preventDefault()
  }
  return (
    <div className="stack">
      <TextAreaField
        ref={area}
        rows={3}
        placeholder="Send every order to Shop orders."
        aria-autocomplete="list"
        {...options.aria}
        onKeyDown={onKeyDown}
        onKeyUp={(event) => (['ArrowLeft', 'ArrowRight', 'Home', 'End'].includes(event.key) ? track() : undefined)}
        onClick={track}
        onBlur={() => setBefore('')}
        {...props}
        onValue={(value) => {
          props.onValue(value)
          track()
        }}
      />
      <ul
        ref={popup}
        id={options.id}
        popover="manual"
        role="listbox"
        aria-label="Webhook sources and look-ups"
        className="menu"
      >
        {options.items(
          ({ name }) => name,
          ({ name }) => name,
        )}
      </ul>
      {children}
    </div>
  )
}
