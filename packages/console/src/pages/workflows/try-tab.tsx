import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import type { AppListedWebhookSourceOut } from '@workflow-service/contract'
import { CONTEXT_MAX_LENGTH } from '@workflow-service/contract/limits'
import { useEffect, useLayoutEffect, useState } from 'react'
import { AppError, call, newId, refresh, useMe, useRead, mutate } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { curlText } from '../../components/curl.ts'
import { type Bound, SelectField, TextAreaField } from '../../components/fields.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { useShortcuts } from '../../components/shortcuts.ts'
import { Loaded } from '../../components/page.tsx'
import { linkTo } from '../../components/thing-link.tsx'
import { CopyBox, shortId } from '../../components/values.tsx'
import { ReadinessPanel, unmetText, useFix } from './readiness-panel.tsx'
import { useTrial } from './trial.tsx'
import { useWorkflow } from './use-workflow.ts'

/** Counts what the contract counts: code points without the white space around the text. */
const lengthOf = (text: string) => Array.from(text.trim()).length

const FIRST_EXAMPLE = { order_id: 'A-1001', customer: 'Ada Lovelace', total: 129.5 }

const MAX_LINES = 8

/** The fields of the examples that fit on a line, as a person may write them. */
function linesOf(examples: readonly Readonly<Record<string, unknown>>[]): string {
  const fields = Object.entries(Object.assign({}, ...examples) as Record<string, unknown>)
  return fields
    .filter(([, value]) => value !== null && typeof value !== 'object')
    .slice(0, MAX_LINES)
    .map(([name, value]) => `${name}: ${String(value)}`)
    .join('\n')
}

/** The examples of the first sources, or one of our own if there are none; undefined until they are read. */
function useExamples(ids: readonly string[]): readonly Readonly<Record<string, unknown>>[] | undefined {
  const first = ids.slice(0, MAX_LINES)
  const read = useQuery({
    // Under no operation's name: a delivery to a source does not change its example.
    queryKey: ['examples', first],
    refetchInterval: false,
    queryFn: ({ signal }) =>
      Promise.all(first.map((id) => call('getWebhookSource', { params: { source_id: id } }, signal))),
  })
  const examples = read.data?.map((source) => source.example_request_body)
  return examples?.length === 0 || read.error ? [FIRST_EXAMPLE] : examples
}

const names = (sources: readonly AppListedWebhookSourceOut[]) =>
  new Intl.ListFormat('en').format(sources.map(({ name }) => name))

/** Says what a start does at the endpoints: at once, after a person has approved it, or once they are resumed. */
function sendsText(sources: readonly AppListedWebhookSourceOut[]): string {
  const {
    none = [],
    first = [],
    always = [],
    paused = [],
  } = Object.groupBy(sources, ({ approval, paused_at: at }) => (at ? 'paused' : approval))
  return [
    none.length > 0 && `This really sends to ${names(none)}.`,
    always.length > 0 && `A person approves first what goes to ${names(always)}.`,
    first.length > 0 && `A person approves what goes to ${names(first)}, until the first one was accepted.`,
    paused.length > 0 &&
      `What goes to ${names(paused)} waits until ${paused.length === 1 ? 'it is' : 'they are'} resumed.`,
  ]
    .filter(Boolean)
    .join(' ')
}

export function WorkflowTryPage() {
  const { again, session = '' } = useSearch({ strict: false })
  return again ? <TryAgain runId={again} /> : <TryForm action="Start" text="" initialSession={session} />
}

/** Begins with the text of an earlier run. */
function TryAgain({ runId }: { runId: string }) {
  const query = useRead('getRun', { params: { run_id: runId } })
  return (
    <Loaded query={query}>{({ context }) => <TryForm action="Start again" text={context} initialSession="" />}</Loaded>
  )
}

function TryForm(props: { action: string; text: string; initialSession: string }) {
  const { action, text, initialSession } = props
  const workflow = useWorkflow()
  const navigate = useNavigate()
  const [id, setId] = useState(newId)
  const sessions = useRead('listSessions', { query: { state: 'open', limit: 20 } }).data?.data ?? []
  const runs = useRead('listRuns', { query: { workflow_id: workflow.id, limit: 1 } }).data?.data ?? []
  const readiness = useRead('getReadiness', { params: { workflow_id: workflow.id } }).data
  const all = useRead('listWebhookSources').data?.data
  const canStart = readiness?.can_start
  const sources = readiness?.sources ?? []
  const used = all?.filter((source) => sources.some((named) => named.id === source.id)) ?? []
  const examples = useExamples(used.map((source) => source.id))
  const example = readiness && all && examples ? linesOf(examples) : ''
  const fix = useFix()
  const trial = useTrial()
  const form = useForm({
    values: { context: text || example, session_id: initialSession },
    isTransient: true,
    asksToLeave: true,
    async save({ context, session_id: session }) {
      const body = { id, context, session_id: session || null }
      await mutate('startWorkflow', { params: { workflow_id: workflow.id }, body }).catch((error: unknown) => {
        if (!(error instanceof AppError && error.status === 409)) throw error
        // An earlier start, whose response was lost, has the id with another text. After other errors, a repetition
        // with the same id starts nothing twice.
        if (error.code === 'id_taken') setId(newId())
        void refresh(['workflows'])
        const unmet = unmetText(error.code)
        throw new AppError(409, { ...error.body, ...(unmet ? { message: `Not started. ${unmet}.` } : {}) })
      })
      await navigate(linkTo('run', id))
    },
  })
  const { clearError } = form
  const tryText = () => trial.start({ context: form.values.context, session_id: form.values.session_id || null })
  useEffect(() => {
    if (canStart) clearError()
    // Only when the cause of a refusal is gone.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [canStart])
  // Above the page, a dialog may have a form of its own.
  useShortcuts({ 'mod+enter': () => (document.querySelector('dialog[open]') ? false : form.submit()) })
  const { context, session_id: session } = form.values
  const known = sessions.map((each) => [each.id, `${shortId(each.id)}, ${each.waiting_count} waiting`])
  return (
    <div className="with-side">
      <ReadinessPanel />
      <div className="stack">
        <Form
          form={form}
          action={form.isSaving ? 'Starting…' : action}
          variant={canStart ? 'primary' : 'secondary'}
          extra={
            <>
              <Button
                label="Try without sending"
                icon="eye"
                isBusy={trial.isPlanning}
                disabled={lengthOf(context) === 0 || lengthOf(context) > CONTEXT_MAX_LENGTH}
                onClick={tryText}
              />
              {form.error && fix ? <Button {...fix} /> : null}
              {used.length > 0 ? <span className="muted">{sendsText(used)}</span> : null}
            </>
          }
        >
          <ContextField field={form.field('context', 'Text')} example={example} />
          {session === '' && (sessions.length === 0 || runs.length === 0) ? null : (
            <SelectField
              hint="Starts of one session run one after another, and a model knows the earlier ones."
              options={{
                '': 'A new session',
                [session]: session ? shortId(session) : 'A new session',
                ...Object.fromEntries(known),
              }}
              {...form.field('session_id', 'Session')}
            />
          )}
        </Form>
        {trial.result}
        <Snippets context={context.trim() || example} session={session} />
      </div>
    </div>
  )
}

/** The text of the start, which begins as an example that is there to be replaced. */
function ContextField({ field, example }: { field: Bound<string>; example: string }) {
  const { value: context, onValue } = field
  useLayoutEffect(() => {
    // The example may arrive while the empty field has the focus: what is typed then replaces it.
    const { activeElement: area } = document
    if (area instanceof HTMLTextAreaElement && context !== '' && context === example) area.select()
  }, [context, example])
  const clear = () => {
    onValue(context === '' ? example : '')
    document.querySelector('textarea')?.focus()
  }
  const count = lengthOf(context)
  return (
    <TextAreaField
      rows={5}
      hint={
        <>
          What the agent works on. One “name: value” on each line, for the built-in agent.
          <span className="keys"> ⌘/Ctrl-Enter starts.</span>
        </>
      }
      aside={
        <span className="row">
          <span className={count > CONTEXT_MAX_LENGTH ? 'field-error' : 'muted'}>
            {count.toLocaleString('en')} of {CONTEXT_MAX_LENGTH.toLocaleString('en')}
          </span>
          <Button label={context === '' ? 'Use an example' : 'Clear'} className="small" onClick={clear} />
        </span>
      }
      onFocus={({ target }) => (context === example ? target.select() : undefined)}
      {...field}
    />
  )
}

/** The same start from a program. */
function Snippets({ context, session }: { context: string; session: string }) {
  const url = `${useMe().api_url ?? 'https://api.example.com'}/v1/workflows/${useWorkflow().id}/start`
  const body = { context, session_id: session || undefined }
  const script = `const response = await fetch(${JSON.stringify(url)}, {
  method: 'POST',
  headers: { Authorization: \`Bearer \${process.env.API_KEY}\`, 'Content-Type': 'application/json' },
  body: JSON.stringify(${JSON.stringify(body)}),
})`
  const headers = ['"Authorization: Bearer $API_KEY"', `'Content-Type: application/json'`]
  return (
    <details>
      <summary>The same from a program</summary>
      <div className="stack">
        <p className="muted">With an API key that has the scope “start”.</p>
        <CopyBox label="curl" text={curlText(url, headers, body)} />
        <CopyBox label="JavaScript" text={script} />
      </div>
    </details>
  )
}
