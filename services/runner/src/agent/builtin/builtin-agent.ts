import { findNamedSources, type NewJournalStep, type NoteStep, PAYLOAD_MAX_BYTES } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { RunError } from '../../run-errors.ts'
import { type AgentSteps, listPendingCalls, listToolResults, openAgentSteps } from '../agent-steps.ts'
import type { Agent, AgentRun, AgentSourceName, AgentWebhookSource } from '../agent.ts'
import { describeOutcome, isDeliveryCall, sendDelivery } from '../deliveries.ts'
import { fillPayload } from './fill-payload.ts'
import { type FieldList, type FillReport, PayloadTooLargeError } from './fill-state.ts'
import { inTurn } from '../in-turn.ts'
import { readInParts } from '../read-in-parts.ts'
import { planByRules } from '../rules/plan-by-rules.ts'
import { readRules } from '../rules/read-rules.ts'
import { startText } from '../start-text.ts'

/** The value of AGENT_MODEL that selects this agent, and the agent's name in the journal. */
export const BUILTIN = 'builtin'

/** All payloads of a run together: the plan is one write to the journal. */
const RUN_MAX_BYTES = 4 * 1024 * 1024

/**
 * Creates the agent that needs no model and no network (contract README, "The built-in agent"). It sends one payload,
 * filled from the context, to every webhook source that the workflow's description names, in order of appearance.
 *
 * It writes the whole plan, delivery ids included, to the journal before it sends anything, so that a resumed run sends
 * the same payloads. It cannot correct a payload and so never sends twice to a source: a payload that is not accepted, or
 * would exceed a limit, fails the run, after the other payloads were sent.
 */
export function createBuiltinAgent(): Agent {
  return async (run) => {
    run.signal.throwIfAborted()
    const steps = openAgentSteps(run)
    if (steps.all.length === 0) await steps.append(...(await planRun(run)))
    for (const call of listPendingCalls(steps.all).filter(isDeliveryCall)) {
      run.signal.throwIfAborted()
      await steps.append(await sendDelivery(run, call))
    }
    failUnlessAllAccepted(steps)
  }
}

async function planRun(agentRun: AgentRun): Promise<NewJournalStep[]> {
  const { run } = agentRun
  const sources = await agentRun.listSources()
  const rules = await readRules(agentRun)
  const named = findNamedSources(run.workflow.description, sources)
  const steps: NewJournalStep[] = [{ kind: 'message', data: { agent: BUILTIN, text: startText(run) } }]
  if (rules)
    return [
      ...steps,
      ...(await planByRules(agentRun, rules, { sources, tool: BUILTIN, maxBytes: RUN_MAX_BYTES, formatReport })),
    ]
  if (named.length === 0) return [...steps, { kind: 'note', data: noSourceNote(sources) }]
  let number = 0
  let freeBytes = RUN_MAX_BYTES
  for await (const source of readInParts(agentRun, named)) {
    number += 1
    // A description can name a thousand sources: other runs of this process must not wait for all of them.
    const plan = await inTurn(() => planDelivery(source, run.context, number, freeBytes))
    freeBytes -= plan.bytes
    steps.push(...plan.steps)
  }
  return steps
}

function planDelivery(
  source: AgentWebhookSource,
  context: string,
  number: number,
  freeBytes: number,
): { steps: NewJournalStep[]; bytes: number } {
  const call = { call_id: `${BUILTIN}-${number}`, tool: BUILTIN }
  if (source.exampleError !== undefined) return planNothing(source, call, source.exampleError)
  try {
    const maxBytes = Math.min(PAYLOAD_MAX_BYTES, freeBytes)
    const { payload, bytes, report } = fillPayload(source.exampleRequestBody, context, maxBytes)
    const delivery = { id: newId(), source_id: source.id, source_name: source.name, payload }
    const note = { code: 'payload_filled', text: `${source.name}: ${formatReport(report)}` }
    return {
      steps: [
        { kind: 'note', data: note },
        { kind: 'tool_call', data: { ...call, delivery } },
      ],
      bytes,
    }
  } catch (error) {
    if (!(error instanceof PayloadTooLargeError)) throw error
    const isRunFull = error.limit === 'bytes' && freeBytes < PAYLOAD_MAX_BYTES
    const reason = isRunFull
      ? `the payloads of one run would be larger than ${RUN_MAX_BYTES / 1024 / 1024} MiB`
      : error.message
    return planNothing(source, call, reason)
  }
}

function planNothing(
  { name }: AgentWebhookSource,
  call: { call_id: string; tool: string },
  reason: string,
): { steps: NewJournalStep[]; bytes: number } {
  const text = `Nothing was sent to ${name}: ${reason}.`
  return {
    steps: [
      { kind: 'tool_call', data: call },
      { kind: 'tool_result', data: { ...call, ok: false, text } },
    ],
    bytes: 0,
  }
}

function noSourceNote(sources: readonly AgentSourceName[]): NoteStep {
  const text =
    sources.length === 0
      ? 'The organization has no webhook source, so nothing was sent.'
      : "The workflow's description names none of the organization's webhook sources, so nothing was sent. Add a source's name to the description."
  return { code: 'no_source_named', text }
}

function formatReport({ named, wholeContext, unconverted, empty }: FillReport): string {
  const parts = [
    formatFields('filled by name', named),
    formatFields('filled with the whole context', wholeContext),
    formatFields('left empty, the value does not fit', unconverted),
    formatFields('left empty, not in the context', empty),
  ]
  return parts.filter((part) => part !== '').join('; ') || 'the example has no fields'
}

function formatFields(title: string, { listed, total }: FieldList): string {
  if (total === 0) return ''
  const more = total > listed.length ? ` and ${total - listed.length} more` : ''
  return `${title}: ${listed.join(', ')}${more}`
}

/** A result without a delivery is that of a payload which was too large to be planned. */
function failUnlessAllAccepted(steps: AgentSteps): void {
  const failed = listToolResults(steps.all).filter(({ ok }) => !ok)
  const [first] = failed
  if (!first) return
  const messages = failed.map(({ delivery, text }) => (delivery ? describeOutcome(delivery) : text.replace(/\.$/, '')))
  throw new RunError(`delivery_${first.delivery?.outcome ?? 'invalid'}`, messages.join('; '))
}
