import { Link } from '@tanstack/react-router'
import { lazy, Suspense, useRef } from 'react'
import { call, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import type { Bound } from '../../components/fields.tsx'
import { Loading } from '../../components/page.tsx'
import type { CodeEditorHandle } from './code-editor.tsx'
import { fieldsOf } from './rules-fields.ts'
import { useTrial } from './trial.tsx'
import { useWorkflow } from './use-workflow.ts'

/** In the address in place of the id of a file: a new `rules.yaml`. */
export const NEW_RULES = 'new-rules'

const CodeEditor = lazy(async () => ({ default: (await import('./code-editor.tsx')).CodeEditor }))

/** The functions of rules, as docs/rules.md describes them. */
const FUNCTIONS = {
  'number(x)': 'a number, also with a currency',
  'text(x)': 'a text',
  'date(x)': 'the date of an ISO date or time',
  'yes(x)': 'true or false, from yes, no, on, off',
  'list(x)': 'a list, from a text at its semicolons, else commas',
  'round(number, digits)': 'rounded',
  'sum(list)': 'the sum of the items',
  'lower(text)': 'in lower case; also upper, trim',
  'replace(text, from, to)': 'with each “from” replaced',
  'substring(text, from, to)': 'characters, counted from 0',
  'capture(text, pattern)': 'the group of a regular expression',
  'default(field, value)': 'the value if the text has no such field',
  'has(field)': 'whether the text has the field',
  'split(text, separator)': 'the parts; also join(list, separator)',
}
const VARIABLES = ['context', 'items', 'input_message', 'workflow.name', 'now']

/** The text of a `rules.yaml`, with what it can use beside it, and what a run of the last text would send by it. */
export function RulesEditor({ field }: { field: Bound<string> }) {
  const editor = useRef<CodeEditorHandle>(undefined)
  const { id: workflowId } = useWorkflow()
  const params = { workflow_id: workflowId }
  const last = useRead('listRuns', { query: { workflow_id: workflowId, limit: 1 } }).data?.data[0]
  const { label, value, onValue, error } = field
  const insert = (name: string) => editor.current?.insert(name)
  const check = async (content: string) => {
    // A save says what is wrong when this cannot.
    const answer = await call('checkRules', { params, body: { content } }).catch(() => undefined)
    return answer?.errors ?? []
  }
  return (
    <div className="rules-editor">
      <div className="stack">
        {value.trim() === '' ? (
          <p className="muted">
            <Link to="." search={{ file: NEW_RULES }} ignoreBlocker>
              Begin with the webhook sources that the task names
            </Link>
            , or with “deliveries:”.
          </p>
        ) : null}
        <Suspense fallback={<Loading label="Loading the editor" />}>
          <CodeEditor
            label={label}
            value={value}
            onValue={onValue}
            check={check}
            onReady={(handle) => (editor.current = handle)}
          />
        </Suspense>
        {error ? (
          <p className="field-error" role="alert">
            {error}
          </p>
        ) : null}
        {last ? <DryRun runId={last.id} rules={value} /> : null}
      </div>
      <aside className="stack" aria-label="What rules can use">
        <Insertable title="Variables" names={VARIABLES} onInsert={insert} />
        {last ? <Fields runId={last.id} onInsert={insert} /> : null}
        <Insertable title="Functions" names={Object.keys(FUNCTIONS)} texts={FUNCTIONS} onInsert={insert} />
      </aside>
    </div>
  )
}

function Fields({ runId, onInsert }: { runId: string; onInsert: (name: string) => void }) {
  const run = useRead('getRun', { params: { run_id: runId } }).data
  const names = run ? fieldsOf(run.context) : []
  return names.length > 0 ? <Insertable title="Fields of the last text" names={names} onInsert={onInsert} /> : null
}

/** Names that a click writes into a text. */
export function Insertable(props: {
  title: string
  names: readonly string[]
  /** What each gives. */
  texts?: Readonly<Record<string, string>>
  onInsert: (name: string) => void
  heading?: 'h2' | 'h3'
}) {
  const { title, heading: Heading = 'h3', texts } = props
  return (
    <section>
      <Heading>{title}</Heading>
      <ul className="insertable">
        {props.names.map((name) => (
          <li key={name}>
            <button type="button" className="link" onClick={() => props.onInsert(name)}>
              <code>{name}</code>
            </button>{' '}
            {texts ? <span className="muted">{texts[name]}</span> : null}
          </li>
        ))}
      </ul>
    </section>
  )
}

/** What these rules would send for the text of the last start, before they are saved. */
function DryRun({ runId, rules }: { runId: string; rules: string }) {
  const run = useRead('getRun', { params: { run_id: runId } }).data
  const trial = useTrial()
  if (!run) return null
  return (
    <>
      <div className="row">
        <Button
          label="Try with the last text"
          icon="eye"
          isBusy={trial.isPlanning}
          onClick={() => trial.start({ context: run.context, session_id: null, rules })}
        />
        <span className="muted">Nothing is sent, and nothing is saved.</span>
      </div>
      {trial.result}
    </>
  )
}
