import {
  findPayloadMismatches,
  findRulesNameError,
  isJsonObject,
  type NewJournalStep,
  PAYLOAD_MAX_BYTES,
  RULES_FILE_NAME,
  RULES_MAX_DELIVERIES,
  toNote,
} from '@workflow-service/contract'
import { newDeliveryId, type SourceForAgent, type SourceName } from '@workflow-service/database'
import type { JsonValue, Rule, Rules } from '@workflow-service/rules'
import { BUILTIN } from '../agent-settings.ts'
import { createTurns } from '@workflow-service/service-kit'
import type { AgentRun } from '../agent.ts'
import { fillPayload, formatFilled, RUN_MAX_BYTES } from '../builtin/fill-payload.ts'
import { refuseIncomplete } from '../builtin/incomplete-payloads.ts'
import { PlanError } from '../builtin/plan-error.ts'
import { isLikeJson, type ReadContext, readContext } from '../builtin/read-context.ts'
import { isContextObject, isDeeperThan } from '../context-values.ts'
import { shareEventLoop } from '../share-event-loop.ts'
import { readInParts } from '../read-in-parts.ts'
import { readRulesText } from './read-rules-text.ts'
import { toContextValue, toRuleFields } from './rule-fields.ts'

/** Levels of a context that rules see. A thousand can be more than the stack has space for. */
const CONTEXT_MAX_LEVELS = 500

/** Parsing goes on for 2 ms at a time. */
const waitForTurn = createTurns()

/**
 * Reads and compiles the workflow's rules; undefined if it has none.
 * @throws PlanError `rule_failed` if they cannot be used; RunParkedError as `readRulesText`.
 */
export async function readRules(
  run: Pick<AgentRun, 'organizationId' | 'workflow' | 'readFile'>,
): Promise<Rules | undefined> {
  const { rulesLikeFiles } = run.workflow
  for (const file of rulesLikeFiles ?? []) {
    // Stored before such names were refused. Its author relies on conditions that nothing would enforce.
    const error = findRulesNameError(file)
    if (error) throw new PlanError('rule_failed', `The name of a file ${error.message}`)
  }
  const text = await readRulesText(run)
  if (text === undefined) return undefined
  // CEL takes time to load, and most organizations have no rules.
  const { parseRules } = await import('@workflow-service/rules')
  const parsed = await parseRules(text, () => waitForTurn(run.organizationId))
  if ('rules' in parsed) return parsed.rules
  const [first, ...others] = parsed.errors
  const more = others.length > 0 ? ` (and ${others.length} more)` : ''
  throw new PlanError('rule_failed', `${first?.message ?? RULES_FILE_NAME}${more}`)
}

type JsonObject = { readonly [name: string]: JsonValue }

/** A delivery whose condition is met. */
interface AskedDelivery {
  readonly rule: Rule
  readonly sourceId: string
  readonly values: JsonObject
  /** Where the fields that the rules do not give are filled from: the context, or the item of `for_each`. */
  readonly context: ReadContext | Error
}

/**
 * Plans the deliveries that the rules ask for, in the order of the file. Fields that the rules do not give are filled
 * by name.
 * @throws PlanError `rule_failed` with the place and the reason, `payload_incomplete` or `needs_a_model`; then nothing
 *   is sent.
 */
export async function planByRules(
  run: AgentRun,
  rules: Rules,
  sources: readonly SourceName[],
): Promise<NewJournalStep[]> {
  const asked = await evaluateRules(run, rules, sources)
  if (asked.length === 0) return [toNote('no_rule_matched', NO_RULE_MATCHED)]
  const ids = new Set(asked.map(({ sourceId }) => sourceId))
  const byId = new Map<string, SourceForAgent>()
  const read = sources.filter(({ id }) => ids.has(id))
  for await (const source of readInParts(run, read)) byId.set(source.id, source)
  const steps: NewJournalStep[] = []
  let freeBytes = RUN_MAX_BYTES
  for (const [index, delivery] of asked.entries()) {
    const { rule, values } = delivery
    const source = byId.get(delivery.sourceId)
    if (!source) throw failAt(rule, ['to'], 'the webhook source was deleted')
    const { payload, filled, bytes } = await shareEventLoop(run.organizationId, () => fillByRule(delivery, source))
    const names = Object.keys(values)
    freeBytes -= bytes
    if (freeBytes < 0) {
      throw failAt(rule, [], `the payloads of one run would be larger than ${RUN_MAX_BYTES / 1024 ** 2} MiB`)
    }
    const given = names.length > 0 ? [`given by ${RULES_FILE_NAME}: ${names.join(', ')}`] : []
    const text = [...given, ...(filled ? [formatFilled(filled)] : [])].join('; ')
    const planned = { id: newDeliveryId(), source_id: source.id, source_name: source.name, payload }
    steps.push(toNote('payload_filled', `${source.name}: ${text}`), {
      kind: 'tool_call',
      data: { call_id: `${BUILTIN}-${index + 1}`, tool: BUILTIN, delivery: planned },
    })
  }
  return steps
}

const NO_RULE_MATCHED = `No condition in ${RULES_FILE_NAME} was true, so nothing was sent.`

async function evaluateRules(run: AgentRun, rules: Rules, sources: readonly SourceName[]): Promise<AskedDelivery[]> {
  const { createEvaluation, findSources } = await import('@workflow-service/rules')
  const { found, errors } = findSources(rules, sources)
  const [unknown] = errors
  if (unknown) throw new PlanError('rule_failed', unknown.message)
  let needsFields = false
  const { context, fields } = await shareEventLoop(run.organizationId, () => {
    const read = readOrError(run.context)
    const readable = read instanceof Error ? { isLikeJson: isLikeJson(run.context) } : read
    const ruleFields = toRuleFields(readable, () => (needsFields = true))
    // A list has no names, but `items`.
    return { context: 'json' in read && Array.isArray(read.json) ? { json: {} } : read, fields: ruleFields }
  })
  // Rules can do without the values of the context, so that they only fail if they ask for one.
  const unreadable = (): Error | undefined => (needsFields && context instanceof Error ? context : undefined)
  const evaluation = createEvaluation({
    ...fields,
    context: run.context,
    inputMessage: run.inputMessage,
    workflow: run.workflow,
    now: new Date(run.acceptedAt),
  })
  const evaluate = <Result>(work: () => Result): Result => {
    let result: Result
    try {
      result = work()
    } catch (error) {
      const isOfRules = error instanceof Error && error.name === 'RuleError'
      throw unreadable() ?? (isOfRules ? new PlanError('rule_failed', error.message) : error)
    }
    const error = unreadable()
    if (error) throw error
    return result
  }
  const asked: AskedDelivery[] = []
  for (const [index, rule] of rules.deliveries.entries()) {
    const sourceId = found[index]?.id ?? ''
    const expanded = await shareEventLoop(run.organizationId, () => evaluate(() => rule.expand(evaluation)))
    for (const { evaluation: own, item } of expanded) {
      await shareEventLoop(run.organizationId, () => {
        if (!evaluate(() => rule.applies(own))) return
        const value = item === undefined ? undefined : toContextValue(item)
        const from = item === undefined ? context : { json: isContextObject(value) ? value : {} }
        asked.push({ rule, sourceId, values: evaluate(() => rule.values(own)), context: from })
      })
      if (asked.length <= RULES_MAX_DELIVERIES) continue
      throw failAt(rule, ['for_each'], `a run sends at most ${RULES_MAX_DELIVERIES} payloads`)
    }
  }
  return asked
}

function readOrError(context: string): ReadContext | PlanError {
  try {
    const read = readContext(context)
    if (!('json' in read) || !isDeeperThan(read.json, CONTEXT_MAX_LEVELS)) return read
    const problem = `the context nests objects and lists more than ${CONTEXT_MAX_LEVELS} levels deep`
    return new PlanError('needs_a_model', `Nothing was sent: ${problem}`)
  } catch (error) {
    if (error instanceof PlanError) return error
    throw error
  }
}

/** The payload, and the part of it that was filled by name. */
function fillByRule(
  { rule, values, context }: AskedDelivery,
  { name: source, exampleRequestBody: example }: SourceForAgent,
): { payload: Record<string, unknown>; filled: Record<string, unknown> | undefined; bytes: number } {
  const open = withoutFields(example, values)
  const isAllGiven = Object.keys(values).length > 0 && Object.keys(open).length === 0
  if (!isAllGiven && context instanceof Error) throw context
  const filled = isAllGiven || context instanceof Error ? undefined : fillPayload(open, context)
  const payload = mergeValues(example, filled?.payload ?? {}, values)
  const isComplete = !filled || filled.missing.length + filled.unusable.length === 0
  const bytes = checkPayload(rule, example, payload, isComplete)
  if (filled && !(context instanceof Error)) refuseIncomplete(context, [{ source, example: open, filled }], true)
  return { payload, filled: filled?.payload, bytes }
}

/** The example without the fields that the values give. An object of which nothing is left is left out. */
function withoutFields(example: Record<string, unknown>, values: JsonObject): Record<string, unknown> {
  const entries = Object.entries(example).flatMap(([name, field]): [string, unknown][] => {
    if (!Object.hasOwn(values, name)) return [[name, field]]
    const value = values[name]
    if (!isJsonObject(field) || !isJsonObject(value)) return []
    const rest = withoutFields(field, value)
    return Object.keys(rest).length > 0 ? [[name, rest]] : []
  })
  return Object.fromEntries(entries)
}

/** The filled fields with the values, in the order of the example. Other fields of the values are last. */
function mergeValues(
  example: Record<string, unknown>,
  filled: Record<string, unknown>,
  values: JsonObject,
): Record<string, unknown> {
  const names = new Set([...Object.keys(example), ...Object.keys(filled), ...Object.keys(values)])
  const entries = [...names].flatMap((name): [string, unknown][] => {
    if (!Object.hasOwn(values, name)) return Object.hasOwn(filled, name) ? [[name, filled[name]]] : []
    const value = values[name]
    const field = Object.hasOwn(example, name) ? example[name] : undefined
    const rest = Object.hasOwn(filled, name) ? filled[name] : {}
    return [
      [
        name,
        isJsonObject(field) && isJsonObject(value) && isJsonObject(rest) ? mergeValues(field, rest, value) : value,
      ],
    ]
  })
  return Object.fromEntries(entries)
}

/** Returns the bytes of the payload as JSON. @throws PlanError `rule_failed` */
function checkPayload(
  rule: Rule,
  example: Record<string, unknown>,
  payload: Record<string, unknown>,
  isComplete: boolean,
): number {
  const mismatches = findPayloadMismatches(example, payload)
  const mismatch = mismatches.find(({ code }) => isComplete || code !== 'missing')
  if (mismatch) {
    const steps = mismatch.field === 'body' ? [] : mismatch.field.split('.')
    throw failAt(rule, ['payload', ...steps], mismatch.message)
  }
  const bytes = Buffer.byteLength(JSON.stringify(payload))
  if (bytes > PAYLOAD_MAX_BYTES) {
    throw failAt(rule, ['payload'], `the payload would be larger than ${PAYLOAD_MAX_BYTES / 1024} KiB`)
  }
  return bytes
}

function failAt(rule: Rule, steps: readonly string[], reason: string): PlanError {
  return new PlanError('rule_failed', rule.errorAt(steps, reason).message)
}
