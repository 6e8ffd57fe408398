import {
  describeRulesNeeded,
  findPayloadMismatches,
  type NewJournalStep,
  PAYLOAD_MAX_BYTES,
  readDescription,
  toNote,
} from '@workflow-service/contract'
import { newDeliveryId, type SourceForAgent, type SourceName } from '@workflow-service/database'
import { RunError } from '../../run-errors.ts'
import { BUILTIN } from '../agent-settings.ts'
import { type AgentSteps, listData, listPendingCalls, openAgentSteps, startText } from '../agent-steps.ts'
import type { Agent, AgentRun } from '../agent.ts'
import { formatDelivery, isDeliveryCall, sendDelivery } from '../deliveries.ts'
import { shareEventLoop } from '../share-event-loop.ts'
import { readInParts } from '../read-in-parts.ts'
import { planByRules, readRules } from '../rules/plan-by-rules.ts'
import { fillPayload, type FilledPayload, formatFilled, RUN_MAX_BYTES } from './fill-payload.ts'
import { refuseIncomplete } from './incomplete-payloads.ts'
import { PlanError, REFUSALS } from './plan-error.ts'
import { type ReadContext, readContext } from './read-context.ts'

/**
 * The agent that needs no model and no network (contract README, "The built-in agent"). It sends what the workflow's
 * `rules.yaml` asks for; without one, a payload that is filled from the context to every webhook source that the
 * description names, in order of appearance.
 *
 * The whole plan, delivery ids included, is in the journal before anything is sent, so that a resumed run sends the
 * same payloads. A plan that is wrong in one part sends nothing: a wrong payload cannot be taken back, while a start
 * can be repeated. The agent cannot correct a payload: one that is not accepted fails the run, after the other
 * payloads were sent.
 */
export const builtinAgent: Agent = async (run) => {
  run.interrupted.throwIfAborted()
  const steps = openAgentSteps(run)
  if (steps.all.length === 0) steps.plan(...(await planRun(run)))
  failIfRefused(steps)
  const calls = listPendingCalls(steps.all).filter(isDeliveryCall)
  for (const [index, call] of calls.entries()) {
    run.interrupted.throwIfAborted()
    const isLast = index === calls.length - 1 && listData(steps.all, 'tool_result').every(({ ok }) => ok)
    await sendDelivery(run, steps, call, isLast)
  }
  failUnlessAllAccepted(steps)
}

async function planRun(run: AgentRun): Promise<NewJournalStep[]> {
  const begin: NewJournalStep = { kind: 'message', data: { agent: BUILTIN, text: startText(run) } }
  const sources = await run.listSources()
  try {
    const rules = await readRules(run)
    return [begin, ...(await (rules ? planByRules(run, rules, sources) : planByDescription(run, sources)))]
  } catch (error) {
    if (!(error instanceof PlanError)) throw error
    const { code, message, details } = error
    return [begin, { kind: 'note', data: { code, text: `${message}.`, ...(details && { details }) } }]
  }
}

/**
 * Plans one delivery to each source that the description names. @throws PlanError if one of the payloads cannot be
 * built.
 */
async function planByDescription(run: AgentRun, sources: readonly SourceName[]): Promise<NewJournalStep[]> {
  const { organizationId, workflow, inputMessage, context: text } = run
  const { named, rulesNeeded } = await shareEventLoop(organizationId, () =>
    readDescription(workflow.description, sources, inputMessage),
  )
  const details = { sources: named.slice(0, 100).map(({ name }) => name), missing: [], unusable: [], unused: [] }
  if (rulesNeeded) {
    const sentence = JSON.stringify(rulesNeeded.excerpt)
    throw new PlanError('rules_needed', describeRulesNeeded(rulesNeeded.message, sentence), details)
  }
  if (named.length === 0) throw new PlanError('no_destination', describeNoDestination(sources), details)

  const context = await shareEventLoop(organizationId, () => readContext(text))
  const steps: NewJournalStep[] = []
  const payloads: Parameters<typeof refuseIncomplete>[1][number][] = []
  let freeBytes = RUN_MAX_BYTES
  for await (const source of readInParts(run, named)) {
    const { id, name, exampleRequestBody: example } = source
    // A description can name a thousand sources: other runs of this process must not wait for all of them.
    const { filled, bytes } = await shareEventLoop(organizationId, () => buildPayload(source, context, freeBytes))
    freeBytes -= bytes
    payloads.push({ source: name, example, filled })
    const delivery = { id: newDeliveryId(), source_id: id, source_name: name, payload: filled.payload }
    steps.push(toNote('payload_filled', `${name}: ${formatFilled(filled.payload)}`), {
      kind: 'tool_call',
      data: { call_id: `${BUILTIN}-${payloads.length}`, tool: BUILTIN, delivery },
    })
  }
  await shareEventLoop(organizationId, () => refuseIncomplete(context, payloads))
  return steps
}

function describeNoDestination(sources: readonly SourceName[]): string {
  return sources.length === 0
    ? 'Nothing was sent: the organization has no webhook source'
    : 'Nothing was sent: the workflow\'s description names none of the organization\'s webhook sources. Add one, such as "Send it to NAME.", or write a rules.yaml'
}

/**
 * Builds the source's payload, also an incomplete one. @throws PlanError if it would be too large, or not be JSON that
 * can be sent.
 */
function buildPayload(
  { name, exampleRequestBody: example }: SourceForAgent,
  context: ReadContext,
  freeBytes: number,
): { filled: FilledPayload; bytes: number } {
  const refuse = (reason: string): PlanError =>
    new PlanError('delivery_invalid', `Nothing was sent to ${name}: ${reason}`)
  const filled = fillPayload(example, context)
  const bytes = Buffer.byteLength(JSON.stringify(filled.payload))
  if (bytes > PAYLOAD_MAX_BYTES) throw refuse(`the payload would be larger than ${PAYLOAD_MAX_BYTES / 1024} KiB`)
  if (bytes > freeBytes) throw refuse(`the payloads of one run would be larger than ${RUN_MAX_BYTES / 1024 ** 2} MiB`)
  const isComplete = filled.missing.length + filled.unusable.length === 0
  const [mismatch] = isComplete ? findPayloadMismatches(example, filled.payload) : []
  if (mismatch) throw refuse(`${mismatch.field}: ${mismatch.message}`)
  return { filled, bytes }
}

function failIfRefused({ all }: AgentSteps): void {
  for (const step of all) {
    if (step.kind !== 'note') continue
    const code = REFUSALS.find((refusal) => refusal === step.data.code)
    if (code) throw new RunError(code, step.data.text.replace(/\.$/, ''))
  }
}

function failUnlessAllAccepted(steps: AgentSteps): void {
  const failed = listData(steps.all, 'tool_result').filter(({ ok }) => !ok)
  const [first] = failed
  if (!first) return
  const messages = failed.map(({ delivery, text }) => (delivery ? formatDelivery(delivery) : text.replace(/\.$/, '')))
  throw new RunError(first.error ?? `delivery_${first.delivery?.outcome ?? 'invalid'}`, messages.join('; '))
}
