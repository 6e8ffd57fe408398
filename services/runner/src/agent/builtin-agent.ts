import type { JournalStep, NewJournalStep, NoteStep, ToolCallStep } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { RunError } from '../run-errors.ts'
import type { Agent, AgentRun, AgentWebhookSource } from './agent.ts'
import { sendDelivery, describeOutcome, isDeliveryCall, unansweredCalls } from './deliveries.ts'
import { fillPayload, type FillReport } from './fill-payload.ts'
import { findNamedSources } from './named-sources.ts'
import { startText } from './run-text.ts'

/** The setting that chooses this agent, and its name in the journal. */
export const BUILTIN = 'builtin'

/**
 * The agent without a model and without a network (design section 6): every webhook source that the workflow's
 * description names, in order of appearance, gets one payload filled from the context. The plan, with every delivery's
 * id, is one write to the journal before anything is sent, so a run that is taken up again sends the very same.
 *
 * It cannot correct a payload, so it never sends to a source twice, and a run with a payload that was not accepted
 * fails with that reason once the other sources had theirs. A description that names no source is a run that succeeds
 * with a note.
 */
export function createBuiltinAgent(): Agent {
  return async (run) => {
    run.signal.throwIfAborted()
    const steps: (JournalStep | NewJournalStep)[] = [...run.steps]
    if (steps.length === 0) {
      const plan = planRun(run.run, await run.listSources())
      await run.append(plan)
      steps.push(...plan)
    }
    for (const call of unansweredCalls(steps).filter(isDeliveryCall)) {
      run.signal.throwIfAborted()
      const result = await sendDelivery(run, call)
      await run.append([result])
      steps.push(result)
    }
    failIfRefused(steps)
  }
}

function planRun(run: AgentRun['run'], sources: readonly AgentWebhookSource[]): NewJournalStep[] {
  const named = findNamedSources(run.workflow.description, sources)
  const message: NewJournalStep = { kind: 'message', data: { agent: BUILTIN, text: startText(run) } }
  if (named.length === 0) return [message, { kind: 'note', data: noSourceNote(sources) }]
  return [message, ...named.flatMap((source, index) => planDelivery(source, run.context, index + 1))]
}

function planDelivery(source: AgentWebhookSource, context: string, number: number): NewJournalStep[] {
  const { payload, report } = fillPayload(source.exampleRequestBody, context)
  const call: ToolCallStep = {
    call_id: `${BUILTIN}-${number}`,
    tool: BUILTIN,
    delivery: { id: newId(), source_id: source.id, source_name: source.name, payload },
  }
  return [
    { kind: 'note', data: { code: 'payload_filled', text: `${source.name}: ${describeReport(report)}` } },
    { kind: 'tool_call', data: call },
  ]
}

function noSourceNote(sources: readonly AgentWebhookSource[]): NoteStep {
  const text =
    sources.length === 0
      ? 'The organization has no webhook source, so there was nothing to send.'
      : "The workflow's description names none of the organization's webhook sources, so nothing was sent. Write a source's name into it."
  return { code: 'no_source_named', text }
}

function describeReport({ named, wholeContext, empty, unconverted }: FillReport): string {
  const parts = [
    named.length > 0 ? `filled by name: ${enumerate(named)}` : '',
    wholeContext.length > 0 ? `given the whole context: ${enumerate(wholeContext)}` : '',
    unconverted.length > 0
      ? `left empty for its value: ${enumerate(unconverted.map(({ field, reason }) => `${field} (${reason})`))}`
      : '',
    empty.length > 0 ? `left empty, the context does not name it: ${enumerate(empty)}` : '',
  ]
  return parts.filter((part) => part !== '').join('; ') || 'the example has no fields'
}

function enumerate(items: readonly string[], limit = 20): string {
  const shown = items.slice(0, limit).join(', ')
  return items.length > limit ? `${shown} and ${items.length - limit} more` : shown
}

function failIfRefused(steps: readonly (JournalStep | NewJournalStep)[]): void {
  const refused = steps.flatMap((step) =>
    step.kind === 'tool_result' && step.data.delivery && !step.data.ok ? [step.data.delivery] : [],
  )
  const [first] = refused
  if (!first) return
  const message = refused.map(describeOutcome).join('; ')
  throw new RunError(`delivery_${first.outcome}`, message)
}
