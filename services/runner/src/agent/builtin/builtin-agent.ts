import {
  type DescriptionWarning,
  type NewJournalStep,
  type NoteStep,
  PAYLOAD_MAX_BYTES,
} from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { RunError } from '../../run-errors.ts'
import { type AgentSteps, listPendingCalls, listToolResults, openAgentSteps } from '../agent-steps.ts'
import type { Agent, AgentRun, AgentSourceName, AgentWebhookSource } from '../agent.ts'
import { formatDelivery, isDeliveryCall, sendDelivery } from '../deliveries.ts'
import { type FilledPayload, fillPayload } from './fill-payload.ts'
import { type FieldList, type FillReport, PayloadTooLargeError } from './fill-state.ts'
import { PlanError, REFUSALS } from './plan-error.ts'
import { readDescriptionOnce } from './read-description.ts'
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
 * the same payloads. A plan that is wrong in one part sends nothing: a wrong payload cannot be taken back, while a start
 * can be repeated. The agent cannot correct a payload and so never sends twice to a source: a payload that is not accepted
 * fails the run, after the other payloads were sent.
 */
export function createBuiltinAgent(): Agent {
  return async (run) => {
    run.signal.throwIfAborted()
    const steps = openAgentSteps(run)
    if (steps.all.length === 0) await steps.append(...(await planRun(run)))
    failIfRefused(steps)
    for (const call of listPendingCalls(steps.all).filter(isDeliveryCall)) {
      run.signal.throwIfAborted()
      await steps.append(await sendDelivery(run, steps, call))
    }
    failUnlessAllAccepted(steps)
  }
}

async function planRun(agentRun: AgentRun): Promise<NewJournalStep[]> {
  const { run } = agentRun
  const begin: NewJournalStep = { kind: 'message', data: { agent: BUILTIN, text: startText(run) } }
  const sources = await agentRun.listSources()
  try {
    const rules = await readRules(agentRun)
    if (rules) return [begin, ...(await planByRules(agentRun, rules, { sources, ...RULES_OPTIONS }))]
    const { named, rulesNeeded } = readDescriptionOnce(run.workflow.description, sources, run.inputMessage)
    if (rulesNeeded) throw new PlanError('rules_needed', formatWarning(rulesNeeded))
    if (named.length === 0) return [begin, { kind: 'note', data: noSourceNote(sources) }]
    return [begin, ...(await planDeliveries(agentRun, named))]
  } catch (error) {
    if (!(error instanceof PlanError)) throw error
    return [begin, noteRefusal(error)]
  }
}

const RULES_OPTIONS = { tool: BUILTIN, maxBytes: RUN_MAX_BYTES, findIncomplete, formatReport }

/** Plans one delivery to each source. @throws PlanError if the payload of one of them cannot be built. */
async function planDeliveries(agentRun: AgentRun, named: readonly AgentSourceName[]): Promise<NewJournalStep[]> {
  const steps: NewJournalStep[] = []
  let freeBytes = RUN_MAX_BYTES
  for await (const source of readInParts(agentRun, named)) {
    // A description can name a thousand sources: other runs of this process must not wait for all of them.
    const { payload, bytes, report } = await inTurn(() => buildPayload(source, agentRun.run.context, freeBytes))
    freeBytes -= bytes
    const note = { code: 'payload_filled', text: `${source.name}: ${formatReport(report)}` }
    const delivery = { id: newId(), source_id: source.id, source_name: source.name, payload }
    steps.push(
      { kind: 'note', data: note },
      { kind: 'tool_call', data: { call_id: `${BUILTIN}-${steps.length / 2 + 1}`, tool: BUILTIN, delivery } },
    )
  }
  return steps
}

/** @throws PlanError if the payload is incomplete or too large. */
function buildPayload(source: AgentWebhookSource, context: string, freeBytes: number): FilledPayload {
  const nothing = `Nothing was sent to ${source.name}`
  if (source.exampleError !== undefined) throw new PlanError('delivery_invalid', `${nothing}: ${source.exampleError}`)
  try {
    const filled = fillPayload(source.exampleRequestBody, context, Math.min(PAYLOAD_MAX_BYTES, freeBytes))
    const reason = findIncomplete(filled.report)
    if (reason) throw new PlanError('payload_incomplete', `${nothing}: ${reason}`)
    return filled
  } catch (error) {
    if (!(error instanceof PayloadTooLargeError)) throw error
    const isRunFull = error.limit === 'bytes' && freeBytes < PAYLOAD_MAX_BYTES
    const reason = isRunFull
      ? `the payloads of one run would be larger than ${RUN_MAX_BYTES / 1024 / 1024} MiB`
      : error.message
    throw new PlanError('delivery_invalid', `${nothing}: ${reason}`)
  }
}

/**
 * Why a payload must not be sent: a value cannot be used, or there is none. Undefined if it can be sent. `isGiven`: it has
 * values beside those of the report.
 */
function findIncomplete({ named, unconverted, empty }: FillReport, isGiven = false): string | undefined {
  if (unconverted.total > 0) return formatFields('values that do not fit', unconverted)
  // A text without names can be all of a payload, but not a part of one that lacks the rest.
  if (isGiven || named.total > 0 || empty.total === 0) return undefined
  return `${formatFields('the context names no value for', empty)}. ${ONLY_NAMES}`
}

const ONLY_NAMES =
  'The built-in agent reads names and values (JSON, "name: value" lines, tables); to understand prose, set a model'

function noteRefusal({ code, message }: PlanError): NewJournalStep {
  return { kind: 'note', data: { code, text: `${message}.` } }
}

function failIfRefused({ all }: AgentSteps): void {
  for (const step of all) {
    if (step.kind !== 'note') continue
    const code = REFUSALS.find((refusal) => refusal === step.data.code)
    if (code) throw new RunError(code, step.data.text.replace(/\.$/, ''))
  }
}

function formatWarning({ message, excerpt }: DescriptionWarning): string {
  return `${message}. The sentence is: ${JSON.stringify(excerpt)}`
}

function noSourceNote(sources: readonly AgentSourceName[]): NoteStep {
  const text =
    sources.length === 0
      ? 'The organization has no webhook source, so nothing was sent.'
      : "The workflow's description names none of the organization's webhook sources, so nothing was sent. Add a source's name to the description."
  return { code: 'no_source_named', text }
}

function formatReport({ named, wholeContext, empty }: FillReport): string {
  const parts = [
    formatFields('filled by name', named),
    formatFields('filled with the whole context', wholeContext),
    formatFields('left empty, not in the context', empty),
  ]
  return parts.filter((part) => part !== '').join('; ') || 'the example has no fields'
}

function formatFields(title: string, { listed, total }: FieldList): string {
  if (total === 0) return ''
  const more = total > listed.length ? ` and ${total - listed.length} more` : ''
  return `${title}: ${listed.join(', ')}${more}`
}

/** A result with neither delivery nor error is in journals from before a plan sent all or nothing: its payload was too large. */
function failUnlessAllAccepted(steps: AgentSteps): void {
  const failed = listToolResults(steps.all).filter(({ ok }) => !ok)
  const [first] = failed
  if (!first) return
  const messages = failed.map(({ delivery, text }) => (delivery ? formatDelivery(delivery) : text.replace(/\.$/, '')))
  throw new RunError(first.error ?? `delivery_${first.delivery?.outcome ?? 'invalid'}`, messages.join('; '))
}
