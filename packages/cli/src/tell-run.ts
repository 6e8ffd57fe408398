import type { JournalStep, ModelAnswerPart, ToolCallStep, ToolResultStep } from '@workflow-service/contract'
import type { RunDelivery, RunStatus, RunDetails } from '@workflow-service/database'
import { type Format, paint, renderTable, showDuration, showTime, type Terminal, withoutControls } from './terminal.ts'

export const STATUS_COLOURS: Record<RunStatus, Format> = {
  queued: 'cyan',
  running: 'cyan',
  succeeded: 'green',
  failed: 'red',
}

/** What happened at one moment of a run: a headline, and below it the text or JSON that it is about. */
interface Scene {
  readonly at: Date
  readonly headline: string
  readonly colour?: Format
  readonly body?: string
}

/** A run as a story: who and what, then each step with its time, then what was sent. */
export function tellRun(terminal: Terminal, story: RunDetails): string {
  return [
    tellTitle(terminal, story),
    ...scenesOf(story).map((scene) => tellScene(terminal, story, scene)),
    tellDeliveries(terminal, story.deliveries),
  ].join('')
}

function tellTitle(terminal: Terminal, story: RunDetails): string {
  const { created_at: acceptedAt, finished_at: finishedAt } = story
  const took = finishedAt ? ` after ${showDuration(finishedAt.getTime() - acceptedAt.getTime())}` : ''
  const attempts = story.attempts > 1 ? `, attempt ${story.attempts}` : ''
  const facts: [string, string][] = [
    ['workflow', `${story.workflow_name}  ${story.workflow_id}`],
    ['session', `${story.session_id}, start number ${story.number}`],
    ['started by', story.origin === 'api' ? 'the public API' : 'its schedule'],
    ['request', story.request_id],
    ['organization', story.organization_id],
  ]
  return [
    `Run ${paint(terminal, 'bold', story.id)} ${paint(terminal, STATUS_COLOURS[story.status], story.status)}${took}${attempts}\n`,
    ...facts.map(([name, value]) => `  ${paint(terminal, 'dim', name.padEnd(12))}  ${withoutControls(value)}\n`),
    '\n',
  ].join('')
}

function tellScene(terminal: Terminal, { created_at: acceptedAt }: RunDetails, scene: Scene): string {
  const time = showClock(scene.at)
  const since = `+${showDuration(Math.max(0, scene.at.getTime() - acceptedAt.getTime()))}`
  const headline = withoutControls(scene.headline)
  const shown = scene.colour ? paint(terminal, scene.colour, headline) : headline
  const lines = (scene.body ?? '').split('\n').filter((line) => line !== '')
  return [
    `${paint(terminal, 'dim', `${time} ${since.padStart(10)}`)}  ${shown}\n`,
    ...lines.map((line) => `${' '.repeat(INDENT)}${paint(terminal, 'dim', '│')} ${withoutControls(line)}\n`),
  ].join('')
}

const INDENT = 25

/** The hour to the millisecond: the day stands in the story's first scene. */
function showClock(time: Date): string {
  return time.toISOString().slice(11, 23)
}

function scenesOf(story: RunDetails): Scene[] {
  const day = story.created_at.toISOString().slice(0, 10)
  const accepted: Scene = {
    at: story.created_at,
    headline: `accepted on ${day}, with the context`,
    body: story.context,
  }
  const began: Scene[] = story.started_at ? [{ at: story.started_at, headline: 'a runner took it up' }] : []
  return [accepted, ...began, ...story.steps.flatMap(toScenes), ...endOf(story)]
}

function endOf({ status, finished_at: at, error }: RunDetails): Scene[] {
  if (!at) return []
  return [{ at, headline: status, colour: STATUS_COLOURS[status], ...(error === null ? {} : { body: error }) }]
}

function toScenes(step: JournalStep): Scene[] {
  const at = step.createdAt
  switch (step.kind) {
    case 'message':
      return [{ at, headline: `the agent (${step.data.agent}) was told`, body: step.data.text }]
    case 'model_answer':
      return [
        { at, headline: `${step.data.model} answered, turn ${step.data.turn}${tokensOf(step.data)}` },
        ...step.data.parts.flatMap((part) => toPartScenes(at, part)),
      ]
    case 'tool_call':
      return [toCallScene(at, step.data)]
    case 'tool_result':
      return [toResultScene(at, step.data)]
    case 'note':
      return [{ at, headline: `note (${step.data.code})`, colour: 'yellow', body: step.data.text }]
    default:
      return step satisfies never
  }
}

function tokensOf({
  input_tokens: read,
  output_tokens: written,
}: {
  input_tokens: number | null
  output_tokens: number | null
}): string {
  return read === null && written === null ? '' : ` (${read ?? '?'} tokens read, ${written ?? '?'} written)`
}

/** The calls that it asks for have scenes of their own, unless they cannot be carried out. */
function toPartScenes(at: Date, part: ModelAnswerPart): Scene[] {
  if (part.type === 'text') return [{ at, headline: 'it said', body: part.text }]
  if (part.type === 'reasoning') return [{ at, headline: 'it thought', body: part.text }]
  if (part.fault === null) return []
  return [{ at, headline: `it asked for ${part.tool}, which cannot be done`, colour: 'yellow', body: part.fault }]
}

function toCallScene(at: Date, { tool, arguments: given, delivery }: ToolCallStep): Scene {
  if (!delivery) return { at, headline: `calls ${tool}`, body: JSON.stringify(given, null, 2) ?? '' }
  const headline = `sends to ${delivery.source_name}, delivery ${delivery.id}`
  return { at, headline, body: JSON.stringify(delivery.payload, null, 2) }
}

function toResultScene(at: Date, { tool, ok, text, delivery }: ToolResultStep): Scene {
  const colour = ok ? 'green' : 'red'
  if (!delivery) return { at, headline: `${tool} ${ok ? 'answered' : 'failed'}`, colour, body: text }
  const status = delivery.status === null ? '' : ` with status ${delivery.status}`
  return { at, headline: `${delivery.source_name}: ${delivery.outcome}${status}`, colour, body: text }
}

function tellDeliveries(terminal: Terminal, deliveries: readonly RunDelivery[]): string {
  if (deliveries.length === 0) return ''
  const columns = [
    { title: 'SENT (UTC)', value: (row: RunDelivery) => showTime(row.created_at) },
    { title: 'TO', value: (row: RunDelivery) => row.source_name ?? row.source_id },
    { title: 'OUTCOME', value: (row: RunDelivery) => row.outcome },
    { title: 'STATUS', value: (row: RunDelivery) => (row.status === null ? '–' : String(row.status)) },
    { title: 'TOOK', value: (row: RunDelivery) => showDuration(row.duration_ms) },
    { title: 'DELIVERY', value: (row: RunDelivery) => row.id },
    { title: 'WHY, OR WHAT IT ANSWERED', value: (row: RunDelivery) => row.reason ?? row.answer ?? '' },
  ]
  return `\n${paint(terminal, 'bold', 'Deliveries')}\n${renderTable(terminal, columns, deliveries, '')}`
}
