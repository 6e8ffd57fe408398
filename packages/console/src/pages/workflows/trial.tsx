import type { NewJournalStep, ToolResultStep, TrialOut } from '@workflow-service/contract'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { AppError, describeError, mutate, newId, queryFor, useRead } from '../../api/index.ts'
import { Button } from '../../components/button.tsx'
import { Notice, Section } from '../../components/page.tsx'
import { ThingLink } from '../../components/thing-link.tsx'
import { JsonView, LongText } from '../../components/values.tsx'
import { keepAsCase } from '../cases/keep-case.tsx'
import { errorText, inWords } from '../runs/run-text.ts'
import { useWorkflow } from './use-workflow.ts'

const POLL_MS = 400

/** What is tried: a text, in a session or in none, with a `rules.yaml` that is not saved or with the workflow's. */
interface Tried {
  context: string
  session_id: string | null
  rules?: string | null
}

/** Tries a workflow without sending. `result`: what a run would send, while and after it is planned. */
export function useTrial() {
  const { id: workflowId } = useWorkflow()
  const [id, setId] = useState<string>()
  const query = useQuery({
    ...queryFor('getTrial', { params: { workflow_id: workflowId, trial_id: id ?? '' } }),
    enabled: id !== undefined,
    refetchInterval: ({ state: { data } }) => (data?.finished_at ? false : POLL_MS),
  })
  const trial = id === undefined ? undefined : query.data
  return {
    async start(tried: Tried) {
      const body = { id: newId(), ...tried }
      await mutate('tryWorkflow', { params: { workflow_id: workflowId }, body })
      setId(body.id)
    },
    isPlanning: id !== undefined && !trial?.finished_at && !query.error,
    result: id === undefined ? null : <TrialResult trial={trial} problem={query.error} />,
  }
}

function TrialResult({ trial, problem }: { trial: TrialOut | undefined; problem: Error | null }) {
  const { id: workflowId } = useWorkflow()
  const steps = (trial?.steps ?? []) as unknown as NewJournalStep[]
  const results = new Map(steps.flatMap(({ kind, data }) => (kind === 'tool_result' ? [[data.call_id, data]] : [])))
  const payloads = steps.flatMap(({ kind, data }) => (kind === 'tool_call' && data.delivery ? [data] : []))
  // Not those that a model corrected.
  const sent = payloads.filter(({ call_id: id }) => results.get(id)?.delivery?.outcome === 'accepted').length
  const isWhole = !steps.some(isOmitted)
  const { error } = trial ?? {}
  return (
    <Section
      title="What a run would send"
      actions={
        trial?.finished_at && !error ? (
          <Button
            label="Keep as case"
            icon="check"
            onClick={() => keepAsCase(workflowId, { trial_id: trial.id }, trial.context)}
          />
        ) : null
      }
    >
      <div role="status">
        {problem && !trial?.finished_at ? (
          <Notice kind="warning">
            {problem instanceof AppError && problem.status === 404
              ? 'A later trial of this workflow has replaced this one, or you cannot see its session any more.'
              : describeError(problem)}
          </Notice>
        ) : !trial?.finished_at ? (
          <p className="muted">Planning the run. Nothing is sent.</p>
        ) : error ? (
          <Notice kind="danger">
            <p>The run would fail. {errorText(error)}</p>
          </Notice>
        ) : (
          <Notice kind={sent > 0 ? 'good' : 'info'}>
            {sent === 0 && isWhole
              ? 'The run would succeed and send nothing.'
              : `The run would send ${isWhole ? '' : 'at least '}${sent === 1 ? '1 payload' : `${sent} payloads`}. Nothing was sent.`}
            {isWhole ? null : ' Some of its steps are too large to be shown.'}
          </Notice>
        )}
      </div>
      {trial?.finished_at ? (
        <ol className="lines" aria-label="Payloads">
          {payloads.map(({ call_id: id, delivery }) => (
            <Payload key={id} {...delivery!} result={results.get(id)} />
          ))}
        </ol>
      ) : null}
      {trial?.finished_at ? <Remarks steps={steps} /> : null}
    </Section>
  )
}

/** Large steps are not kept. */
const isOmitted = ({ data }: NewJournalStep) => 'omitted_bytes' in data

interface PayloadProps {
  source_id: string
  source_name: string
  payload: unknown
  result: ToolResultStep | undefined
}

function Payload({ source_id: id, source_name: name, payload, result }: PayloadProps) {
  const source = useRead('listWebhookSources').data?.data.find((each) => each.id === id)
  const { outcome, reason } = result?.delivery ?? {}
  const isSent = outcome === 'accepted'
  return (
    <li className="stack">
      <h3>
        {isSent ? 'To' : 'Not to'} <ThingLink kind="webhook_source" id={id} name={name} />
      </h3>
      {isSent && source && source.approval !== 'none' ? (
        <p className="muted">
          {source.approval === 'always' ? 'After a person has approved it.' : 'A person may have to approve it first.'}
        </p>
      ) : null}
      {reason ? <p>{reason}</p> : null}
      <JsonView label={`payload to ${name}`} value={payload} />
    </li>
  )
}

/** What the agent noted, and what a model wrote. */
function Remarks({ steps }: { steps: readonly NewJournalStep[] }) {
  const texts = steps.flatMap((step) => {
    const { kind, data } = step
    if (isOmitted(step)) return []
    if (kind === 'note') return [inWords(data.text)]
    if (kind === 'model_answer') return data.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
    return []
  })
  if (texts.length === 0) return null
  return (
    <details>
      <summary>What the agent noted</summary>
      <div className="stack">
        {texts.map((text, index) => (
          <LongText key={`${index} ${text.slice(0, 20)}`} text={text} />
        ))}
      </div>
    </details>
  )
}
