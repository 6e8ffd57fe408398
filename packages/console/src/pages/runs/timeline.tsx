import { Link } from '@tanstack/react-router'
import type {
  AppDeliveryOut,
  ModelAnswerStep,
  NewJournalStep,
  RunDetailOut,
  ToolCallStep,
  ToolResultStep,
} from '@workflow-service/contract'
import type { ReactNode } from 'react'
import { Icon, type IconName } from '../../components/icons.tsx'
import { JsonView } from '../../components/json-view.tsx'
import { StatusBadge } from '../../components/status-badge.tsx'
import { durationText, Time, utcText } from '../../components/time.tsx'
import { errorText } from './run-list.tsx'

type Tone = 'good' | 'bad' | 'warn' | 'quiet'

interface Entry {
  readonly key: string
  readonly at: string
  readonly icon: IconName
  readonly tone: Tone
  readonly title: ReactNode
  readonly body?: ReactNode
}

/** The run as events in their order; a delivery is one entry with its outcome. */
export function Timeline({ run }: { run: RunDetailOut }) {
  return (
    <ol className="timeline" aria-label="Timeline">
      {entriesOf(run).map(({ key, at, icon, tone, title, body }) => (
        <li key={key} className={tone}>
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
            {body}
          </div>
        </li>
      ))}
    </ol>
  )
}

function entriesOf(run: RunDetailOut): Entry[] {
  const results = new Map<string, ToolResultStep>()
  for (const { kind, data } of run.steps) {
    if (kind === 'tool_result') results.set((data as ToolResultStep).call_id, data as ToolResultStep)
  }
  const deliveries = new Map(run.deliveries.map((delivery) => [delivery.id, delivery]))
  const entries: Entry[] = [
    {
      key: 'accepted',
      at: run.created_at,
      icon: 'check',
      tone: 'quiet',
      title: 'Start accepted',
      body: <LongText text={run.context} />,
    },
  ]
  if (run.started_at) {
    entries.push({ key: 'started', at: run.started_at, icon: 'run', tone: 'quiet', title: 'Run began' })
  }
  const calls = new Set<string>()
  for (const step of run.steps) {
    const { kind, data } = step as unknown as NewJournalStep
    const base = { key: String(step.position), at: step.created_at }
    switch (kind) {
      case 'message':
        if (data.text !== run.context) {
          entries.push({
            ...base,
            icon: 'session',
            tone: 'quiet',
            title: 'The agent received',
            body: <LongText text={data.text} />,
          })
        }
        break
      case 'model_answer':
        entries.push(...answerEntries(base, data))
        break
      case 'tool_call': {
        calls.add(data.call_id)
        const delivery = data.delivery ? deliveries.get(data.delivery.id) : undefined
        entries.push({ ...base, ...callEntry(data, results.get(data.call_id), delivery) })
        break
      }
      case 'tool_result':
        // Shown with its call.
        if (!calls.has(data.call_id)) {
          entries.push({
            ...base,
            icon: 'info',
            tone: data.ok ? 'quiet' : 'warn',
            title: `${data.tool} answered`,
            body: <LongText text={data.text} />,
          })
        }
        break
      case 'note':
        entries.push({
          ...base,
          icon: 'info',
          tone: REMARKS.has(data.code) ? 'quiet' : 'warn',
          title: noteTitle(data.code),
          body: <p>{data.text}</p>,
        })
        break
    }
  }
  if (run.finished_at) {
    const isGood = run.status === 'succeeded'
    entries.push({
      key: 'end',
      at: run.finished_at,
      icon: isGood ? 'check' : 'close',
      tone: isGood ? 'good' : 'bad',
      title: isGood ? 'Succeeded' : 'Failed',
      ...(run.error ? { body: <p>{errorText(run.error)}</p> } : {}),
    })
  }
  return entries
}

const NOTES: Record<string, string> = {
  payload_filled: 'Payload filled in',
  no_source_named: 'No webhook source named',
  history_shortened: 'History shortened',
  sources_left_out: 'Webhook sources left out',
  model_retry: 'Model asked again',
  taken_up_again: 'Continued by another runner',
  attempt_failed: 'Attempt failed',
}
/** Notes that need no attention. */
const REMARKS = new Set(['payload_filled', 'history_shortened', 'taken_up_again'])
const noteTitle = (code: string) => NOTES[code] ?? code.replaceAll('_', ' ')

function answerEntries(base: { key: string; at: string }, data: ModelAnswerStep): Entry[] {
  const tokens = data.input_tokens === null ? '' : `, ${data.input_tokens} + ${data.output_tokens ?? 0} tokens`
  const parts = data.parts.map((part, index) => {
    const key = `${base.key}-${index}`
    if (part.type === 'text') return <LongText key={key} text={part.text} />
    if (part.type === 'reasoning') {
      return (
        <details key={key}>
          <summary>Reasoning</summary>
          <LongText text={part.text} />
        </details>
      )
    }
    return part.fault ? (
      <p key={key}>
        Cannot call {part.tool}: {part.fault}
      </p>
    ) : null
  })
  const title = (
    <>
      The agent answered{' '}
      <span className="muted">
        {data.model}
        {tokens}
      </span>
    </>
  )
  return [{ ...base, icon: 'session', tone: 'quiet', title, body: parts }]
}

function callEntry(
  call: ToolCallStep,
  result: ToolResultStep | undefined,
  delivery: AppDeliveryOut | undefined,
): Omit<Entry, 'key' | 'at'> {
  if (!call.delivery) {
    return {
      icon: 'send',
      tone: result && !result.ok ? 'warn' : 'quiet',
      title: `The agent called ${call.tool}`,
      body: (
        <>
          {call.arguments === undefined ? null : <JsonView label="arguments" value={call.arguments} />}
          {result ? <LongText text={result.text} /> : null}
        </>
      ),
    }
  }
  const { id, source_id: sourceId, source_name: name, payload } = call.delivery
  const outcome = delivery?.outcome ?? result?.delivery?.outcome ?? 'in_flight'
  const status = delivery?.status ?? result?.delivery?.status
  const reason = delivery?.reason ?? result?.delivery?.reason
  return {
    icon: 'send',
    tone: outcome === 'accepted' ? 'good' : outcome === 'in_flight' ? 'quiet' : 'bad',
    title: (
      <>
        Sent to{' '}
        <Link to="/sources/$sourceId" params={{ sourceId }}>
          {name}
        </Link>{' '}
        <StatusBadge status={outcome} />
      </>
    ),
    body: (
      <>
        <p className="row">
          <span className="muted">
            {[status && `Status ${status}`, delivery?.duration_ms ? durationText(delivery.duration_ms) : undefined]
              .filter(Boolean)
              .join(', ')}
          </span>
          <Link to="/deliveries/$deliveryId" params={{ deliveryId: id }}>
            Open the delivery
          </Link>
        </p>
        {reason ? <p>{reason}</p> : null}
        <details open>
          <summary>Payload</summary>
          <JsonView label="payload" value={payload} />
        </details>
        {result ? (
          <details>
            <summary>What the agent received</summary>
            <LongText text={result.text} />
          </details>
        ) : null}
      </>
    ),
  }
}

const LONG = 1_200

/** A text as it is; a long one is folded. */
export function LongText({ text }: { text: string }) {
  if (text === '') return <p className="muted">(no text)</p>
  const block = <pre className="text">{text}</pre>
  if (text.length <= LONG) return block
  return (
    <details>
      <summary>
        {text.slice(0, 120)}… ({text.length.toLocaleString('en')} characters)
      </summary>
      {block}
    </details>
  )
}

/** A run's deliveries that are no step of it: payloads that people sent again. */
export function Resent({ run }: { run: RunDetailOut }) {
  const resent = run.deliveries.filter(({ resend_of: of }) => of !== null)
  if (resent.length === 0) return null
  return (
    <section className="section">
      <h2>Sent again</h2>
      <ul className="lines">
        {resent.map((delivery) => (
          <li key={delivery.id} className="row">
            <StatusBadge status={delivery.outcome} />
            <Link to="/deliveries/$deliveryId" params={{ deliveryId: delivery.id }}>
              {delivery.source_name ?? 'A webhook source'}
            </Link>
            <span className="muted">
              by {delivery.sent_by?.name ?? 'a person'}, <Time value={delivery.created_at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}
