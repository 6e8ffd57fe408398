import type { NewJournalStep, RunDetailOut, ToolCallStep, ToolResultStep } from '@workflow-service/contract'
import type { ReactNode } from 'react'
import { Icon, type IconName } from '../../components/icons.tsx'
import { JsonView } from '../../components/json-view.tsx'
import { LongText } from '../../components/long-text.tsx'
import { Section } from '../../components/page.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { ThingLink } from '../../components/thing-link.tsx'
import { durationText, Time, utcText } from '../../components/time.tsx'
import { errorText } from './run-list.tsx'

/** The run as events in their order; a delivery is one event with its outcome. */
export function Timeline({ run }: { run: RunDetailOut }) {
  const { created_at: acceptedAt, started_at: startedAt, finished_at: endedAt, error } = run
  const isGood = run.status === 'succeeded'
  return (
    <ol className="timeline" aria-label="Timeline">
      <Event run={run} at={acceptedAt} icon="check" title="Start accepted" text={run.context} />
      {startedAt ? (
        <Event
          run={run}
          at={startedAt}
          icon="run"
          title="Run began"
          // A run that succeeded had steps.
          note={isGood && run.steps.length === 0 ? 'Its steps were deleted because of their age.' : ''}
        />
      ) : null}
      {run.steps.map((step) => (
        <Step key={step.position} run={run} at={step.created_at} step={step as unknown as NewJournalStep} />
      ))}
      {endedAt ? (
        <Event
          run={run}
          at={endedAt}
          icon={isGood ? 'check' : 'close'}
          tone={isGood ? 'good' : 'bad'}
          title={isGood ? 'Succeeded' : 'Failed'}
          note={error ? errorText(error) : ''}
        />
      ) : null}
    </ol>
  )
}

interface EventProps {
  run: RunDetailOut
  at: string
  icon: IconName
  tone?: 'good' | 'bad' | 'warn' | 'quiet'
  title: ReactNode
  /** What was received or sent. */
  text?: string
  /** A sentence of the service. */
  note?: string
  children?: ReactNode
}

function Event({ run, at, icon, tone = 'quiet', title, text, note, children }: EventProps) {
  return (
    <li className={tone}>
      <span className="mark">
        <Icon name={icon} />
      </span>
      <div className="event">
        <header className="row">
          <h3>{title}</h3>
          <time className="muted at-end" dateTime={at} title={utcText(at)}>
            +{durationText(Math.max(0, Date.parse(at) - Date.parse(run.created_at)))}
          </time>
        </header>
        {text === undefined ? null : <LongText text={text} />}
        {note ? <p>{note}</p> : null}
        {children}
      </div>
    </li>
  )
}

const NOTES: Record<string, string> = {
  payload_filled: 'Payload filled in',
  no_source_named: 'No webhook source named',
  history_shortened: 'History shortened',
  sources_left_out: 'Webhook sources left out',
  model_retry: 'Model asked again',
  model_limited: 'Model limits requests',
  run_parked: 'Waits for the model',
  taken_up_again: 'Continued by another runner',
  attempt_failed: 'Attempt failed',
}
/** Notes that need no attention. */
const REMARKS = new Set(['payload_filled', 'history_shortened', 'taken_up_again'])

interface StepProps<Data> {
  run: RunDetailOut
  at: string
  step: Data
}

function Step({ run, at, step: { kind, data } }: StepProps<NewJournalStep>) {
  const base = { run, at }
  switch (kind) {
    case 'message':
      if (data.text === run.context) return null
      return <Event {...base} icon="session" title="The agent received" text={data.text} />
    case 'model_answer':
      return <Answer {...base} step={data} />
    case 'tool_call':
      return data.delivery ? <Sent {...base} step={data} /> : <Call {...base} step={data} />
    case 'tool_result': {
      // Shown with its call.
      if (run.steps.some((each) => each.kind === 'tool_call' && callId(each.data) === data.call_id)) return null
      const tone = data.ok ? 'quiet' : 'warn'
      return <Event {...base} icon="info" tone={tone} title={`${data.tool} answered`} text={data.text} />
    }
    case 'approval_request':
      return <Event {...base} icon="clock" tone="warn" title={`Waits for approval: ${data.source_name}`} />
    case 'approval_decision': {
      const title = data.decided_by ? `${DECISIONS[data.decision]} by ${data.decided_by}` : DECISIONS[data.decision]
      const tone = data.decision === 'approved' ? 'good' : 'bad'
      return <Event {...base} icon="people" tone={tone} title={title} {...(data.reason ? { text: data.reason } : {})} />
    }
    case 'note': {
      const title = NOTES[data.code] ?? data.code.replaceAll('_', ' ')
      const tone = REMARKS.has(data.code) ? 'quiet' : 'warn'
      return <Event {...base} icon="info" tone={tone} title={title} note={data.text} />
    }
  }
}

const DECISIONS = { approved: 'Approved', declined: 'Declined', expired: 'Not approved in time' }

const callId = (data: unknown) => (data as { call_id: string }).call_id

function resultOf(run: RunDetailOut, call: ToolCallStep): ToolResultStep | undefined {
  const step = run.steps.find(({ kind, data }) => kind === 'tool_result' && callId(data) === call.call_id)
  return step?.data as ToolResultStep | undefined
}

function Answer({ step, ...base }: StepProps<Extract<NewJournalStep, { kind: 'model_answer' }>['data']>) {
  const { model, input_tokens: read, output_tokens: written, parts } = step
  const detail = read === null ? model : `${model}, ${read} + ${written ?? 0} tokens`
  const title = (
    <>
      The agent answered <span className="muted">{detail}</span>
    </>
  )
  return (
    <Event {...base} icon="session" title={title}>
      {parts.map((part, index) => {
        const key = `${index} ${part.type}`
        if (part.type === 'tool_call')
          return part.fault ? <p key={key}>{`Cannot call ${part.tool}: ${part.fault}`}</p> : null
        return part.type === 'text' ? (
          <LongText key={key} text={part.text} />
        ) : (
          <FoldedText key={key} title="Reasoning" text={part.text} />
        )
      })}
    </Event>
  )
}

function Call({ step, ...base }: StepProps<ToolCallStep>) {
  const result = resultOf(base.run, step)
  return (
    <Event {...base} icon="send" tone={result?.ok === false ? 'warn' : 'quiet'} title={`The agent called ${step.tool}`}>
      {step.arguments === undefined ? null : <JsonView label="arguments" value={step.arguments} />}
      {result ? <LongText text={result.text} /> : null}
    </Event>
  )
}

/** A payload of the agent, with what became of it. */
function Sent({ step, ...base }: StepProps<ToolCallStep>) {
  const { id, source_id: sourceId, source_name: name, payload } = step.delivery ?? {}
  if (!id || !sourceId) return null
  const result = resultOf(base.run, step)
  const delivery = base.run.deliveries.find((each) => each.id === id)
  const { outcome, status, reason } = delivery ?? result?.delivery ?? { outcome: 'in_flight' }
  const took = delivery?.duration_ms ? durationText(delivery.duration_ms) : null
  const source = <ThingLink kind="webhook_source" id={sourceId} name={name} />
  const approval = base.run.approvals.find((each) => each.delivery_id === id)?.status
  if (!delivery && approval && approval !== 'approved') {
    return (
      <Event {...base} icon="send" tone={approval === 'waiting' ? 'warn' : 'bad'} title={<>Not sent to {source}</>}>
        <JsonView label="payload" value={payload} />
      </Event>
    )
  }
  const title = (
    <>
      Sent to {source} <StatusBadge status={outcome} />
    </>
  )
  return (
    <Event
      {...base}
      icon="send"
      tone={outcome === 'accepted' ? 'good' : outcome === 'in_flight' ? 'quiet' : 'bad'}
      title={title}
    >
      <p className="row">
        <span className="muted">{[status && `Status ${status}`, took].filter(Boolean).join(', ')}</span>
        <ThingLink kind="delivery" id={id} name={outcome === 'rejected' ? ANSWER_LINK : 'Open the delivery'} />
      </p>
      {reason ? <p>{reason}</p> : null}
      <details open>
        <summary>Payload</summary>
        <JsonView label="payload" value={payload} />
      </details>
      {result ? <FoldedText title="What the agent received" text={result.text} /> : null}
    </Event>
  )
}

/** The steps do not have the answer to a rejected request, since the agent does not receive it. */
export const ANSWER_LINK = 'See what the endpoint answered'

/** The names of the fields that had no value in the context, as the notes of the built-in agent list them. */
export function emptyFields(run: RunDetailOut): string[] {
  const texts = run.steps.map(({ data }) => data as { code?: string; text?: string })
  return texts.flatMap(({ code, text = '' }) =>
    code === 'payload_filled' ? (/.*left empty, not in the context: (.*)$/s.exec(text)?.slice(1) ?? []) : [],
  )
}

function FoldedText({ title, text }: { title: string; text: string }) {
  return (
    <details>
      <summary>{title}</summary>
      <LongText text={text} />
    </details>
  )
}

/** A run's deliveries that are no step of it: payloads that people sent again. */
export function Resent({ run }: { run: RunDetailOut }) {
  const resent = run.deliveries.filter(({ resend_of: of }) => of !== null)
  if (resent.length === 0) return null
  return (
    <Section title="Sent again">
      <ul className="lines">
        {resent.map(({ id, outcome, source_name: name, sent_by: by, created_at: at }) => (
          <li key={id} className="row">
            <StatusBadge status={outcome} />
            <ThingLink kind="delivery" id={id} name={name ?? 'A webhook source'} />
            <span className="muted">
              by {by?.name ?? 'a person'}, <Time value={at} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  )
}
