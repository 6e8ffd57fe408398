import type { JournalStep, ModelAnswerPart, ToolCallStep, ToolResultStep } from '@workflow-service/contract'
import { canDraftRules, whyParked } from '@workflow-service/contract'
import { unmarkUntrusted } from '@workflow-service/contract/unmark-untrusted'
import type { RunDelivery, RunDetails } from '@workflow-service/database'
import { DELIVERY_COLUMNS, DELIVERY_ID, stateColour } from '../run-columns.ts'
import {
  type Column,
  type Format,
  formatFacts,
  paint,
  renderTable,
  showClock,
  showDuration,
  showTime,
  type Terminal,
  withoutControls,
  wrapText,
} from '../terminal.ts'

const STARTERS: Record<RunDetails['origin'], string> = {
  api: 'the public API',
  app: 'a person or the operator',
  auto_run: 'its schedule',
}

/** One event of a run: a headline, and the text or JSON that belongs to it. */
interface Event {
  readonly headline: string
  readonly colour?: Format
  readonly body?: string | null
}

type TimelineEntry = Event & { readonly at: Date }

/** Formats a run: its main facts, the events with their times, and a table of its deliveries. */
export function formatRun(terminal: Terminal, run: RunDetails): string {
  return [formatHead(terminal, run), formatEvents(terminal, run), formatDeliveries(terminal, run)].join('')
}

/** Formats the status and the main facts of a run. */
export function formatHead(terminal: Terminal, run: RunDetails): string {
  const { created_at: acceptedAt, finished_at: finishedAt } = run
  const took = finishedAt ? ` after ${showDuration(finishedAt.getTime() - acceptedAt.getTime())}` : ''
  const attempts = run.attempts > 1 ? `, attempt ${run.attempts}` : ''
  const waits = whyParked(run)
  const facts: [string, string][] = [
    ['workflow', `${run.workflow_name}  ${run.workflow_id}`],
    ['session', `${run.session_id}, start number ${run.number}`],
    ['started by', STARTERS[run.origin]],
    ['request', run.request_id],
    ['organization', run.organization_id],
    ...(waits === undefined ? [] : [['waits', waits] satisfies [string, string]]),
    ...(canDraftRules(run.error) ? [['what next', `wf rules draft ${run.id}`] satisfies [string, string]] : []),
  ]
  return [
    `Run ${paint(terminal, 'bold', run.id)} ${paint(terminal, stateColour(run.status), run.status)}${took}${attempts}\n`,
    formatFacts(terminal, facts),
    '\n',
  ].join('')
}

/** Width of the columns before a headline: time of day, then time since acceptance. */
const BODY_INDENT = 25

function formatEntry(terminal: Terminal, { created_at: acceptedAt }: RunDetails, entry: TimelineEntry): string {
  const time = showClock(entry.at)
  const since = `+${showDuration(Math.max(0, entry.at.getTime() - acceptedAt.getTime()))}`
  const headline = withoutControls(entry.headline)
  // On a terminal that is too narrow for columns, it wraps the lines itself.
  const width = Math.max(20, (terminal.columns ?? Infinity) - BODY_INDENT - 2)
  const [first = '', ...more] = wrapText(headline, width + 2)
  const lines = (entry.body ?? '').split('\n').filter((line) => line !== '')
  const body = lines.flatMap((line) => wrapText(withoutControls(line), width))
  const indent = ' '.repeat(BODY_INDENT)
  return [
    `${paint(terminal, 'dim', `${time} ${since.padStart(10)}`)}  ${paint(terminal, entry.colour, first)}\n`,
    ...more.map((line) => `${indent}${paint(terminal, entry.colour, line)}\n`),
    ...body.map((line) => `${indent}${paint(terminal, 'dim', '│')} ${line}\n`),
  ].join('')
}

/** Formats the events of a run, without the first ones if `from` is given. */
export function formatEvents(terminal: Terminal, run: RunDetails, from = 0): string {
  return timelineOf(run)
    .slice(from)
    .map((entry) => formatEntry(terminal, run, entry))
    .join('')
}

/** The events of a run in their order. */
export function timelineOf(run: RunDetails): TimelineEntry[] {
  const { created_at: acceptedAt, started_at: begunAt, finished_at: endedAt, status, error } = run
  const accepted = `start accepted on ${acceptedAt.toISOString().slice(0, 10)}, with this context`
  return [
    { at: acceptedAt, headline: accepted, body: run.context },
    ...(begunAt ? [{ at: begunAt, headline: 'a runner began the run' }] : []),
    ...run.steps.flatMap((step) => eventsOf(step, run).map((event) => ({ at: step.createdAt, ...event }))),
    ...(endedAt ? [{ at: endedAt, headline: status, colour: stateColour(status), body: error }] : []),
  ]
}

function eventsOf(step: JournalStep, { approvals }: Pick<RunDetails, 'approvals'>): Event[] {
  switch (step.kind) {
    case 'message':
      return [{ headline: `message to the agent (${step.data.agent})`, body: unmarkUntrusted(step.data.text) }]
    case 'model_answer':
      return [
        { headline: `${step.data.model} answered, turn ${step.data.turn}${showTokens(step.data)}` },
        ...step.data.parts.flatMap(eventsOfPart),
      ]
    case 'tool_call':
      return [toolCallEvent(step.data)]
    case 'tool_result':
      return [toolResultEvent(step.data)]
    case 'approval_request': {
      const { delivery_id: id, source_name: source, expires_at: until } = step.data
      const headline = `waits for an approval until ${showTime(new Date(until))} UTC: ${source}, delivery ${id}`
      const url = approvals.find((approval) => approval.delivery_id === id)?.endpoint_url
      return [{ headline, colour: 'yellow', body: url ? `It is sent to ${url}` : null }]
    }
    case 'approval_decision': {
      const { decision, decided_by: by, delivery_id: id, reason } = step.data
      const edited = step.data.payload ? ', edited' : ''
      const headline = `${decision}${edited}${by === null ? '' : ` by ${by}`}, delivery ${id}`
      return [{ headline, colour: decision === 'approved' ? 'green' : 'red', body: reason }]
    }
    case 'session_summary':
      return [{ headline: `${step.data.model} summarized the session${showTokens(step.data)}`, body: step.data.text }]
    case 'note':
      return [{ headline: `note (${step.data.code})`, colour: 'yellow', body: step.data.text }]
    default:
      return step satisfies never
  }
}

type Tokens = Readonly<Record<'input_tokens' | 'output_tokens', number | null>>

function showTokens({ input_tokens: input, output_tokens: output }: Tokens): string {
  return input === null && output === null ? '' : ` (${input ?? '?'} input tokens, ${output ?? '?'} output tokens)`
}

/** The events of one part of an answer. A tool call that can be executed has none here: its own steps follow. */
function eventsOfPart(part: ModelAnswerPart): Event[] {
  if (part.type !== 'tool_call') return [{ headline: part.type, body: part.text }]
  if (part.fault === null) return []
  return [{ headline: `invalid call of ${part.tool}`, colour: 'yellow', body: part.fault }]
}

function toolCallEvent({ tool, arguments: given, delivery }: ToolCallStep): Event {
  if (!delivery) return { headline: `calls ${tool}`, body: JSON.stringify(given, null, 2) }
  const { send_again: again } = delivery
  const why = again ? `, again after ${again.delivery_id}: ${again.reason}` : ''
  const headline = `sends to ${delivery.source_name}, delivery ${delivery.id}${why}`
  return { headline, body: JSON.stringify(delivery.payload, null, 2) }
}

function toolResultEvent({ tool, ok, text, delivery }: ToolResultStep): Event {
  const status = delivery?.status ? ` with status ${delivery.status}` : ''
  const headline = delivery
    ? `${delivery.source_name}: ${delivery.outcome}${status}`
    : `${tool} ${ok ? 'answered' : 'failed'}`
  return { headline, colour: ok ? 'green' : 'red', body: unmarkUntrusted(text) }
}

/** Formats the deliveries of a run as a table; empty without any. */
export function formatDeliveries(terminal: Terminal, { deliveries }: RunDetails): string {
  if (deliveries.length === 0) return ''
  const columns: readonly Column<RunDelivery>[] = [
    ...DELIVERY_COLUMNS,
    { title: 'TOOK', value: (row) => showDuration(row.duration_ms) },
    DELIVERY_ID,
    { title: 'REASON OR ANSWER', value: (row) => row.reason ?? row.answer ?? '' },
  ]
  return `\n${paint(terminal, 'bold', 'Deliveries')}\n${renderTable(terminal, columns, deliveries, '')}`
}
