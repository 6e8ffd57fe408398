import type { NewJournalStep, NoteStep, ToolCallStep } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { RunError } from '../run-errors.ts'
import { type AgentSteps, listPendingCalls, listToolResults, openAgentSteps } from './agent-steps.ts'
import type { Agent, AgentRun, AgentWebhookSource } from './agent.ts'
import { describeOutcome, isDeliveryCall, sendDelivery } from './deliveries.ts'
import { fillPayload, type FillReport } from './fill-payload.ts'
import { findNamedSources } from './named-sources.ts'
import { startText } from './start-text.ts'

/** The value of AGENT_MODEL that selects this agent, and the agent's name in the journal. */
export const BUILTIN = 'builtin'

/**
 * Creates the agent that needs no model and no network (contract README, "The built-in agent"). It sends one payload,
 * filled from the context, to every webhook source that the workflow's description names, in order of appearance.
 *
 * It writes the whole plan, delivery ids included, to the journal before it sends anything, so that a resumed run sends
 * the same payloads. It cannot correct a payload and so never sends twice to a source: a payload that is not accepted
 * fails the run, after the other payloads were sent.
 */
export function createBuiltinAgent(): Agent {
  return async (run) => {
    run.signal.throwIfAborted()
    const steps = openAgentSteps(run)
    if (steps.all.length === 0) await steps.append(...planRun(run.run, await run.listSources()))
    for (const call of listPendingCalls(steps.all).filter(isDeliveryCall)) {
      run.signal.throwIfAborted()
      await steps.append(await sendDelivery(run, call))
    }
    failUnlessAllAccepted(steps)
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
    { kind: 'note', data: { code: 'payload_filled', text: `${source.name}: ${formatReport(report)}` } },
    { kind: 'tool_call', data: call },
  ]
}

function noSourceNote(sources: readonly AgentWebhookSource[]): NoteStep {
  const text =
    sources.length === 0
      ? 'The organization has no webhook source, so nothing was sent.'
      : "The workflow's description names none of the organization's webhook sources, so nothing was sent. Add a source's name to the description."
  return { code: 'no_source_named', text }
}

function formatReport({ named, wholeContext, unconverted, empty }: FillReport): string {
  const parts = [
    named.length > 0 ? `filled by name: ${enumerate(named)}` : '',
    wholeContext.length > 0 ? `filled with the whole context: ${enumerate(wholeContext)}` : '',
    unconverted.length > 0
      ? `left empty, the value does not fit: ${enumerate(unconverted.map(({ field, reason }) => `${field} (${reason})`))}`
      : '',
    empty.length > 0 ? `left empty, not in the context: ${enumerate(empty)}` : '',
  ]
  return parts.filter((part) => part !== '').join('; ') || 'the example has no fields'
}

function enumerate(items: readonly string[], limit = 20): string {
  const shown = items.slice(0, limit).join(', ')
  return items.length > limit ? `${shown} and ${items.length - limit} more` : shown
}

function failUnlessAllAccepted(steps: AgentSteps): void {
  const failed = listToolResults(steps.all).flatMap(({ ok, delivery }) => (delivery && !ok ? [delivery] : []))
  const [first] = failed
  if (first) throw new RunError(`delivery_${first.outcome}`, failed.map(describeOutcome).join('; '))
}
