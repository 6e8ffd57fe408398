import { useNavigate, useSearch } from '@tanstack/react-router'
import { CONTEXT_MAX_LENGTH } from '@workflow-service/contract/limits'
import { useEffect, useState } from 'react'
import { AppError, invalid, newId, refresh, useMe, useRead, write } from '../../api/index.ts'
import { curlText } from '../../components/curl.ts'
import { SelectField, TextAreaField } from '../../components/fields.tsx'
import { Form, useForm } from '../../components/form.tsx'
import { useShortcuts } from '../../components/shortcuts.ts'
import { Loaded } from '../../components/states.tsx'
import { linkTo } from '../../components/thing-link.tsx'
import { CopyBox, shortId } from '../../components/values.tsx'
import { ReadinessPanel } from './readiness-panel.tsx'
import { useWorkflow } from './use-workflow.ts'

/** Counts what the contract counts: code points without the white space around the text. */
const lengthOf = (text: string) => Array.from(text.trim()).length

const FIRST_EXAMPLE = { order_id: 'A-1001', customer: 'Ada Lovelace', total: 129.5 }

/** The fields of an example that fit on a line, as a person may write them. */
function linesOf(example: Readonly<Record<string, unknown>>): string {
  const fields = Object.entries(example).filter(([, value]) => value !== null && typeof value !== 'object')
  return fields
    .slice(0, 6)
    .map(([name, value]) => `${name}: ${String(value)}`)
    .join('\n')
}

export function WorkflowTryPage() {
  const { again, session = '' } = useSearch({ strict: false })
  return again ? <TryAgain runId={again} /> : <TryForm text="" initialSession={session} />
}

/** Begins with the text of an earlier run. */
function TryAgain({ runId }: { runId: string }) {
  const query = useRead('getRun', { params: { run_id: runId } })
  return <Loaded query={query}>{({ context }) => <TryForm text={context} initialSession="" />}</Loaded>
}

function TryForm({ text, initialSession }: { text: string; initialSession: string }) {
  const workflow = useWorkflow()
  const navigate = useNavigate()
  const [id, setId] = useState(newId)
  const sessions = useRead('listSessions', { query: { state: 'open', limit: 20 } }).data?.data ?? []
  const form = useForm({
    values: { context: text, session_id: initialSession },
    isTransient: true,
    async save({ context, session_id: session }) {
      if (lengthOf(context) === 0) throw invalid('context', 'Enter a text.')
      if (lengthOf(context) > CONTEXT_MAX_LENGTH) {
        throw invalid('context', `Shorten the text to ${CONTEXT_MAX_LENGTH} characters.`)
      }
      const body = { id, context, session_id: session || null }
      await write('startWorkflow', { params: { workflow_id: workflow.id }, body }).catch((error: unknown) => {
        // Refused, so nothing has the id; without an answer, a repetition with the same id starts nothing twice.
        if (error instanceof AppError && error.status >= 400 && error.status < 500) setId(newId())
        if (error instanceof AppError && error.status === 409) void refresh(['workflows'])
        throw error
      })
      await navigate(linkTo('run', id))
    },
  })
  const readiness = useRead('getReadiness', { params: { workflow_id: workflow.id } }).data
  const canStart = readiness?.can_start
  const { clearError } = form
  useEffect(() => {
    if (canStart) clearError()
    // Only when the cause of a refusal is gone.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [canStart])
  const firstId = readiness?.sources[0]?.id
  const example = useRead('listWebhookSources').data?.data.find((source) => source.id === firstId)?.example_request_body
  const placeholder = linesOf(example ?? FIRST_EXAMPLE)
  useShortcuts({ 'mod+enter': form.submit })
  const { context, session_id: session } = form.values
  const count = lengthOf(context)
  const known = Object.fromEntries(
    sessions.map((each) => [
      each.id,
      `${shortId(each.id)}, ${each.start_count} ${each.start_count === 1 ? 'start' : 'starts'}, ${each.waiting_count} waiting`,
    ]),
  )
  return (
    <div className="with-side">
      <div className="stack">
        <Form form={form} action={form.isSaving ? 'Starting…' : 'Start'}>
          <TextAreaField
            rows={8}
            placeholder={placeholder}
            hint="What the agent works on, as a call of the API would send it. ⌘/Ctrl-Enter starts."
            aside={
              <span className={count > CONTEXT_MAX_LENGTH ? 'field-error' : 'muted'}>
                {count.toLocaleString('en')} of {CONTEXT_MAX_LENGTH.toLocaleString('en')}
              </span>
            }
            {...form.field('context', 'Text')}
          />
          <SelectField
            hint="Starts of one session run one after another, and the agent knows the earlier ones."
            options={{ '': 'A new session', [session]: session ? shortId(session) : 'A new session', ...known }}
            {...form.field('session_id', 'Session')}
          />
        </Form>
        <Snippets workflowId={workflow.id} context={context.trim() || placeholder} session={session} />
      </div>
      <ReadinessPanel workflow={workflow} />
    </div>
  )
}

/** The same start from a program. */
function Snippets({ workflowId, context, session }: { workflowId: string; context: string; session: string }) {
  const url = `${useMe().api_url ?? 'https://api.example.com'}/v1/workflows/${workflowId}/start`
  const body = { context, ...(session ? { session_id: session } : {}) }
  const script = [
    `const response = await fetch(${JSON.stringify(url)}, {`,
    `  method: 'POST',`,
    "  headers: { Authorization: `Bearer ${process.env.API_KEY}`, 'Content-Type': 'application/json' },",
    `  body: JSON.stringify(${JSON.stringify(body)}),`,
    `})`,
  ]
  const headers = ['"Authorization: Bearer $API_KEY"', `'Content-Type: application/json'`]
  return (
    <details>
      <summary>The same from a program</summary>
      <div className="stack">
        <p className="muted">With an API key that has the scope “start”.</p>
        <CopyBox label="curl" text={curlText(url, headers, body)} />
        <CopyBox label="JavaScript" text={script.join('\n')} />
      </div>
    </details>
  )
}
