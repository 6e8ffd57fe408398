import {
  findPayloadMismatches,
  type NewJournalStep,
  PAYLOAD_MAX_BYTES,
  RULES_FILE_NAME,
} from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import type { Rule, Rules } from '@workflow-service/rules'
import type { AgentRun, AgentSourceName, AgentWebhookSource } from '../agent.ts'
import { type FilledPayload, fillPayload } from '../builtin/fill-payload.ts'
import { type FillReport, PayloadTooLargeError } from '../builtin/fill-state.ts'
import { parseContext } from '../builtin/parse-context.ts'
import { PlanError } from '../builtin/plan-error.ts'
import { inTurn } from '../in-turn.ts'
import { readInParts } from '../read-in-parts.ts'
import { type JsonObject, mergeValues, withoutFields } from './merge-values.ts'
import { RULE_CONVERSIONS } from './rule-conversions.ts'
import { toRuleFields } from './rule-fields.ts'

/** What the agent plans with. */
interface PlanOptions {
  readonly sources: readonly AgentSourceName[]
  /** The name of the tool in the journal. */
  readonly tool: string
  /** All payloads of the run together. */
  readonly maxBytes: number
  /** Why a payload must not be sent; undefined if it can be. `isGiven`: the rules give a value of it. */
  readonly findIncomplete: (report: FillReport, isGiven: boolean) => string | undefined
  /** Says in the journal where the values of a payload came from. */
  readonly formatReport: (report: FillReport) => string
}

/** A delivery whose condition is met. */
interface AskedDelivery {
  readonly rule: Rule
  readonly sourceId: string
  readonly values: JsonObject
}

/**
 * Plans the deliveries that the rules ask for, in the order of the file. Fields that the rules do not give are filled by name.
 * @throws PlanError `rule_failed` with the place and the reason, or `payload_incomplete`; then nothing is sent.
 */
export async function planByRules(
  agentRun: AgentRun,
  rules: Rules,
  { sources, tool, maxBytes, findIncomplete, formatReport }: PlanOptions,
): Promise<NewJournalStep[]> {
  const asked = await evaluateRules(agentRun, rules, sources)
  if (asked.length === 0) return [{ kind: 'note', data: NO_RULE_MATCHED }]
  const ids = new Set(asked.map(({ sourceId }) => sourceId))
  const byId = new Map<string, AgentWebhookSource>()
  const read = sources.filter(({ id }) => ids.has(id))
  for await (const source of readInParts(agentRun, read)) byId.set(source.id, source)
  const steps: NewJournalStep[] = []
  let freeBytes = maxBytes
  for (const [index, { rule, sourceId, values }] of asked.entries()) {
    const source = byId.get(sourceId)
    const problem = source ? source.exampleError : 'the webhook source was deleted'
    if (!source || problem !== undefined) throw failAt(rule, ['to'], problem ?? '')
    const { payload, report } = await inTurn(() => fillByRule(rule, source, values, agentRun.run.context))
    const names = Object.keys(values)
    const reason = report && findIncomplete(report, names.length > 0)
    if (reason) throw new PlanError('payload_incomplete', `Nothing was sent to ${source.name}: ${reason}`)
    freeBytes -= Buffer.byteLength(JSON.stringify(payload))
    if (freeBytes < 0) {
      throw failAt(rule, [], `the payloads of one run would be larger than ${maxBytes / 1024 / 1024} MiB`)
    }
    const given = names.length > 0 ? [`given by ${RULES_FILE_NAME}: ${names.join(', ')}`] : []
    const text = [...given, ...(report ? [formatReport(report)] : [])].join('; ')
    const delivery = { id: newId(), source_id: source.id, source_name: source.name, payload }
    steps.push(
      { kind: 'note', data: { code: 'payload_filled', text: `${source.name}: ${text}` } },
      { kind: 'tool_call', data: { call_id: `${tool}-${index + 1}`, tool, delivery } },
    )
  }
  return steps
}

const NO_RULE_MATCHED = {
  code: 'no_rule_matched',
  text: `No condition in ${RULES_FILE_NAME} was true, so nothing was sent.`,
}

async function evaluateRules(
  { run }: AgentRun,
  rules: Rules,
  sources: readonly AgentSourceName[],
): Promise<AskedDelivery[]> {
  const { createEvaluation, findSources } = await import('@workflow-service/rules')
  const { found, errors } = findSources(rules, sources)
  const [unknown] = errors
  if (unknown) throw new PlanError('rule_failed', unknown.message)
  const evaluation = createEvaluation({
    fields: toRuleFields(parseContext(run.context)),
    context: run.context,
    inputMessage: run.inputMessage,
    workflow: run.workflow,
    now: new Date(run.acceptedAt),
    conversions: RULE_CONVERSIONS,
  })
  const asked: AskedDelivery[] = []
  for (const [index, rule] of rules.deliveries.entries()) {
    const sourceId = found[index]?.id ?? ''
    await inTurn(() => {
      if (orFail(() => rule.applies(evaluation))) {
        asked.push({ rule, sourceId, values: orFail(() => rule.values(evaluation)) })
      }
    })
  }
  return asked
}

/** The payload, and where its other values came from. */
function fillByRule(
  rule: Rule,
  { exampleRequestBody: example }: AgentWebhookSource,
  values: JsonObject,
  context: string,
): { payload: Record<string, unknown>; report: FillReport | undefined } {
  const open = withoutFields(example, values)
  const isAllGiven = Object.keys(values).length > 0 && Object.keys(open).length === 0
  const filled = isAllGiven ? undefined : fillOpen(rule, open, context)
  const payload = mergeValues(example, filled?.payload ?? {}, values)
  checkPayload(rule, example, payload)
  return { payload, report: filled?.report }
}

function fillOpen(rule: Rule, open: Record<string, unknown>, context: string): FilledPayload {
  try {
    return fillPayload(open, context)
  } catch (error) {
    throw error instanceof PayloadTooLargeError ? failAt(rule, [], error.message) : error
  }
}

function checkPayload(rule: Rule, example: Record<string, unknown>, payload: Record<string, unknown>): void {
  const [mismatch] = findPayloadMismatches(example, payload)
  if (mismatch) {
    const steps = mismatch.field === 'body' ? [] : mismatch.field.split('.')
    throw failAt(rule, ['payload', ...steps], mismatch.message)
  }
  if (Buffer.byteLength(JSON.stringify(payload)) > PAYLOAD_MAX_BYTES) {
    throw failAt(rule, ['payload'], `the payload would be larger than ${PAYLOAD_MAX_BYTES / 1024} KiB`)
  }
}

function failAt(rule: Rule, steps: readonly string[], reason: string): PlanError {
  return new PlanError('rule_failed', rule.errorAt(steps, reason).message)
}

/** Runs the work; an error of the rules fails the run. */
function orFail<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (error instanceof Error && error.name === 'RuleError') throw new PlanError('rule_failed', error.message)
    throw error
  }
}
