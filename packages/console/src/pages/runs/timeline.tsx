import type { NewJournalStep, RunDetailOut, ToolCallStep, ToolResultStep } from '@workflow-service/contract'
import { describeNote } from '@workflow-service/contract/journal-notes'
import type { ReactNode } from 'react'
import { Icon, type IconName } from '../../components/icons.tsx'
import { Section } from '../../components/page.tsx'
import { durationText, StatusBadge, Time, utcText } from '../../components/status-and-time.tsx'
import { ThingLink } from '../../components/thing-link.tsx'
import { JsonView, LongText, moneyText } from '../../components/values.tsx'
import { inWords } from './run-text.ts'

interface TimelineEvent {
  icon: IconName
  tone?: 'good' | 'bad' | 'warn' | 'quiet' | undefined
  title: ReactNode
  /** What was received or sent. */
  text?: string | null
  /** A sentence of the service. */
  note?: string | null
  content?: ReactNode
}

const ENDS: Readonly<Record<string, TimelineEvent>> = {
  succeeded: { icon: 'check', tone: 'good', title: 'Succeeded' },
  failed: { icon: 'close', tone: 'bad', title: 'Failed' },
}

/** The run as events in their order; a delivery is one event with its outcome. */
export function Timeline({ run }: { run: RunDetailOut }) {
  const { created_at: acceptedAt, started_at: startedAt, finished_at: endedAt, status, steps } = run
  const end = ENDS[status] ?? { icon: 'close', title: `Cancelled by ${run.cancelled_by ?? 'a person'}` }
  // A run that succeeded had steps.
  const isOld = status === 'succeeded' && steps.length === 0
  const note = isOld ? 'Its steps were deleted because of their age.' : null
  return (
    <ol className="timeline" aria-label="Timeline">
      <Event run={run} at={acceptedAt} event={{ icon: 'check', title: 'Start accepted', text: run.context }} />
      {startedAt ? <Event run={run} at={startedAt} event={{ icon: 'run', title: 'Run began', note }} /> : null}
      {steps.map((step) => {
        const event = eventOf(run, step as unknown as NewJournalStep)
        return event ? <Event key={step.position} run={run} at={step.created_at} event={event} /> : null
      })}
      {endedAt ? <Event run={run} at={endedAt} event={end} /> : null}
    </ol>
  )
}

function Event({ run, at, event }: { run: RunDetailOut; at: string; event: TimelineEvent }) {
  const { icon, tone = 'quiet', title, text, note, content } = event
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
        {typeof text === 'string' ? <LongText text={text} /> : null}
        {note ? <p>{note}</p> : null}
        {content}
      </div>
    </li>
  )
}

const DECISIONS = { approved: 'Approved', declined: 'Declined', expired: 'Not approved in time' }

const LARGE: Readonly<Record<NewJournalStep['kind'], string>> = {
  message: 'The agent received',
  model_answer: 'The agent answered',
  tool_call: 'The agent called a tool',
  tool_result: 'A tool answered',
  approval_request: 'Waits for approval',
  approval_decision: 'Approval decided',
  session_summary: 'Earlier runs summarized',
  note: 'Note',
}

/** A step that is not read, since those before it are large. */
function largeEvent(kind: NewJournalStep['kind'], bytes: number): TimelineEvent {
  const note = `It is large: its ${bytes.toLocaleString('en')} bytes are not shown.`
  const log = kind === 'tool_call' ? ' What was sent is in the log of its webhook source.' : ''
  return { icon: 'info', title: LARGE[kind], note: note + log }
}

/** A step of the journal as an event. Null for one that another event shows. */
function eventOf(run: RunDetailOut, { kind, data }: NewJournalStep): TimelineEvent | null {
  const { omitted_bytes: omitted } = data as { omitted_bytes?: number }
  if (omitted !== undefined) return largeEvent(kind, omitted)
  switch (kind) {
    case 'message':
      return data.text === run.context ? null : { icon: 'session', title: 'The agent received', text: data.text }
    case 'model_answer':
      return answerEvent(data)
    case 'tool_call': {
      const step = run.steps.find((each) => each.kind === 'tool_result' && callId(each.data) === data.call_id)
      const result = step?.data as ToolResultStep | undefined
      return data.delivery ? sentEvent(run, data.delivery, result) : callEvent(data, result)
    }
    case 'tool_result':
      // Shown with its call.
      if (run.steps.some((each) => each.kind === 'tool_call' && callId(each.data) === data.call_id)) return null
      return { icon: 'info', tone: data.ok ? 'quiet' : 'warn', title: `${data.tool} answered`, text: data.text }
    case 'approval_request':
      return { icon: 'clock', tone: 'warn', title: `Waits for approval: ${data.source_name}` }
    case 'approval_decision': {
      const { decision, decided_by: by, payload } = data
      const title = `${DECISIONS[decision]}${by ? ` by ${by}` : ''}${payload ? ', edited' : ''}`
      const content = payload ? <JsonView label="edited payload" value={payload} /> : null
      return {
        icon: 'people',
        tone: decision === 'approved' ? 'good' : 'bad',
        title,
        text: data.reason || null,
        content,
      }
    }
    case 'session_summary':
      return { icon: 'session', title: titleOf('Earlier runs summarized', data), text: data.text }
    case 'note': {
      // The reason of the failure is above the timeline.
      if (run.error?.startsWith(`${data.code}: `)) return null
      const { title, isRemark } = describeNote(data.code) ?? { title: data.code.replaceAll('_', ' ') }
      return { icon: 'info', tone: isRemark ? 'quiet' : 'warn', title, note: inWords(data.text) }
    }
  }
}

const callId = (data: unknown) => (data as { call_id: string }).call_id

type Answer = Extract<NewJournalStep, { kind: 'model_answer' }>['data']

/** What a model wrote, with its name, tokens and cost. */
function titleOf(text: string, of: Omit<Answer, 'turn' | 'parts' | 'finish_reason'>): ReactNode {
  const { model, model_name: name, input_tokens: read, output_tokens: written, cost_micros: cost, currency } = of
  const origin = [
    name === undefined ? model : `${name} (${model})`,
    read !== null && `${read} + ${written ?? 0} tokens`,
    cost !== undefined && currency !== undefined && moneyText(cost, currency),
  ]
  return (
    <>
      {text} <span className="muted">{origin.filter(Boolean).join(', ')}</span>
    </>
  )
}

function answerEvent(data: Answer): TimelineEvent {
  const content = data.parts.map((part, index) => {
    const key = `${index} ${part.type}`
    if (part.type === 'text') return <LongText key={key} text={part.text} />
    if (part.type !== 'tool_call') return <FoldedText key={key} title="Reasoning" text={part.text} />
    return part.fault ? <p key={key}>{`Cannot call ${part.tool}: ${part.fault}`}</p> : null
  })
  return { icon: 'session', title: titleOf('The agent answered', data), content }
}

function callEvent({ tool, arguments: sent, lookup }: ToolCallStep, result: ToolResultStep | undefined): TimelineEvent {
  const content = (
    <>
      {sent === undefined ? null : <JsonView label="arguments" value={sent} />}
      {result ? <LongText text={result.text} /> : null}
    </>
  )
  const title = lookup ? `Looked up ${lookup.tool} in ${lookup.name}` : `The agent called ${tool}`
  return { icon: lookup ? 'search' : 'send', tone: result?.ok === false ? 'warn' : 'quiet', title, content }
}

/** A payload of the agent, with what became of it. */
function sentEvent(
  run: RunDetailOut,
  { id, source_id: sourceId, source_name: name, payload, send_again: again }: NonNullable<ToolCallStep['delivery']>,
  result: ToolResultStep | undefined,
): TimelineEvent {
  const delivery = run.deliveries.find((each) => each.id === id)
  // The link and the failure of a single one are above the timeline.
  const isOnly = run.deliveries.filter(({ resend_of: of }) => of === null).length === 1
  const sent = delivery ?? result?.delivery
  const took = delivery?.duration_ms ? durationText(delivery.duration_ms) : null
  const source = <ThingLink kind="webhook_source" id={sourceId} name={name} />
  const json = <JsonView label="payload" value={payload} />
  const approval = run.approvals.find((each) => each.delivery_id === id)?.status
  // Planned, or approved: until it is sent, its source may be paused, or the run was stopped before.
  if (!sent || (!delivery && approval && approval !== 'approved')) {
    const tone = [undefined, 'waiting', 'approved'].includes(approval) && run.finished_at === null ? 'warn' : 'bad'
    return { icon: 'send', tone, title: <>Not sent to {source}</>, content: json }
  }
  const { outcome, status, reason } = sent
  const title = (
    <>
      {again ? 'Sent again to' : 'Sent to'} {source} <StatusBadge status={outcome} />
    </>
  )
  const content = (
    <>
      {again ? <p>The payload may have arrived before. The agent’s reason to send it again: {again.reason}</p> : null}
      <p className="row">
        <span className="muted">{[status && `Status ${status}`, took].filter(Boolean).join(', ')}</span>
        {isOnly ? null : <ThingLink kind="delivery" id={id} name={deliveryText(outcome)} />}
      </p>
      {reason && !(run.error && isOnly) ? <p>{reason}</p> : null}
      <details open>
        <summary>Payload</summary>
        {json}
      </details>
      {result ? <FoldedText title="What the agent received" text={result.text} /> : null}
    </>
  )
  const tone = outcome === 'accepted' ? 'good' : outcome === 'in_flight' ? 'quiet' : 'bad'
  return { icon: 'send', tone, title, content }
}

/** The steps do not have the answer to a rejected request, since the agent does not receive it. */
export const deliveryText = (outcome: string) =>
  outcome === 'rejected' ? 'See what the endpoint answered' : 'Open the delivery'

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
              by {by?.name ?? 'a person or the operator'}, <Time value={at} />
            </span>
          </li>
        ))}
      </ul>
    </Section>
  )
}
