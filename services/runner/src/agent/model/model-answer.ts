import {
  isDeeperThan,
  isJsonObject,
  isStorableText,
  listToolCalls,
  type ModelAnswerPart,
  type ModelAnswerStep,
  parseWithSource,
  PAYLOAD_MAX_DEPTH,
  type SessionSummaryStep,
  type ToolCallPart,
  toStorableText,
  truncateText,
} from '@workflow-service/contract'
import { type ContextValue, isExactNumber } from '@workflow-service/rules/convert-value'
import type { AgentSteps } from '../agent-steps.ts'
import { findRepeatedName } from '../context-values.ts'
import type { ModelAnswer } from './model-question.ts'
import { listAnswers, type ModelRun } from './model-run.ts'
import type { Toolbox } from './model-tools.ts'

export interface Answered {
  readonly answer: ModelAnswer
  readonly latencyMs: number
  /** Null: it has no known cost. */
  readonly cost: { readonly micros: number; readonly currency: string } | null
}

/**
 * Converts the next answer of the model to its journal step. Each tool call gets an id that is unique in the run, and
 * an error message if it cannot be executed. The payload of a delivery is recorded here, so that a source that is
 * changed after a crash does not change it.
 */
export function toAnswerStep(
  ctx: Pick<ModelRun, 'model' | 'config'> & { readonly steps: Pick<AgentSteps, 'all'> },
  answered: Answered,
  toolbox: Toolbox,
): ModelAnswerStep {
  const { answer } = answered
  const earlier = listAnswers(ctx.steps)
  const turn = earlier.length + 1
  const usedIds = new Set(earlier.flatMap(listToolCalls).map(({ call_id }) => call_id))
  const parts: ModelAnswerPart[] = []
  for (const part of answer.parts) {
    const options = toProviderOptions(part)
    if (part.type === 'tool-call') {
      // Some servers reuse call ids in each answer, or give none at all.
      const isUsable = /^[a-zA-Z0-9_-]{1,64}$/.test(part.callId) && !usedIds.has(part.callId)
      const call_id = isUsable ? part.callId : unusedCallId(turn, usedIds)
      usedIds.add(call_id)
      const tool = truncateText(toStorableText(part.tool), 200)
      parts.push({ type: 'tool_call', call_id, tool, ...toCall(tool, part.input, toolbox), ...options })
    } else if (part.text.trim() !== '' || options.provider_options) {
      parts.push({ type: part.type, text: toStorableText(part.text), ...options })
    }
  }
  return {
    turn,
    parts,
    finish_reason: toStorableText(answer.finishReason),
    raw_finish_reason: toShortText(answer.rawFinishReason),
    // A runner of 1.0.0 that resumes the run needs it.
    ends_by_call: true,
    ...toAnswerFields(ctx, answered),
  }
}

/** What a step of the journal has of an answer, beside its content. */
export function toAnswerFields(
  { model, config: { name, isOwnKey } }: Pick<ModelRun, 'model' | 'config'>,
  { answer: { usage, responseId }, latencyMs, cost }: Answered,
): Omit<SessionSummaryStep, 'turn' | 'through' | 'text'> {
  return {
    model,
    ...(name === model ? {} : { model_name: name }),
    ...(isOwnKey ? { key_of: 'organization' as const } : {}),
    ...usage,
    ...(cost ? { cost_micros: cost.micros, currency: cost.currency } : {}),
    latency_ms: Math.round(latencyMs),
    response_id: toShortText(responseId),
  }
}

function toShortText(text: string | null): string | null {
  return text === null ? null : truncateText(toStorableText(text), 200)
}

function unusedCallId(turn: number, usedIds: ReadonlySet<string>): string {
  for (let number = 1; ; number += 1) {
    const id = `call_${turn}_${number}`
    if (!usedIds.has(id)) return id
  }
}

function toCall(
  tool: string,
  input: string,
  toolbox: Toolbox,
): Pick<ToolCallPart, 'source_id' | 'source_name' | 'lookup' | 'arguments' | 'payload' | 'fault'> {
  const { value, fault } = parseArguments(input)
  if (!Object.hasOwn(toolbox.definitions, tool)) {
    const names = Object.keys(toolbox.definitions).join(', ')
    return { source_id: null, arguments: value, fault: `There is no such tool. The tools are: ${names}.` }
  }
  const { source, lookup, toPayload } = toolbox.target(tool) ?? {}
  const call = {
    source_id: source?.id ?? null,
    ...(source && { source_name: source.name }),
    ...(lookup && { lookup }),
    arguments: value,
  }
  if (fault !== null || !toPayload) return { ...call, fault }
  const payload = toPayload(value)
  if (!isJsonObject(payload)) {
    return {
      ...call,
      fault: refused(value, 'fields must be a list of objects with name and value, each name once').fault,
    }
  }
  return { ...call, ...(payload === value ? {} : { payload }), fault }
}

/** The arguments of a tool call, or why they cannot be used. */
type ParsedArguments =
  | { readonly value: Record<string, unknown>; readonly fault: null }
  /** `value` is what the model wrote, in a form that the journal accepts. */
  | { readonly value: unknown; readonly fault: string }

/**
 * Parses the arguments that a model wrote as JSON. Empty text means none: some servers send it for a tool without
 * parameters. Refuses what JSON.parse would change silently: numbers that a double cannot hold, a name that an object
 * has twice, and the name `__proto__`; and texts that PostgreSQL cannot read from the journal: `->>` fails for a
 * document with one.
 */
export function parseArguments(input: string): ParsedArguments {
  let problem: string | null = null
  let value: unknown
  try {
    value = parseWithSource(input.trim() === '' ? '{}' : input, (name, item, { source }) => {
      if (!isStorableText(name) || (typeof item === 'string' && !isStorableText(item))) {
        problem ??= 'a text has a NUL character or half of a surrogate pair'
      }
      if (name === '__proto__') problem ??= 'a field is named __proto__'
      if (typeof item === 'number' && !isExactNumber(source ?? String(item))) {
        const number = truncateText(source ?? String(item), 60)
        problem ??= `the number ${number} has more digits than can be sent exactly; send it as text if the field takes text`
      }
      return item
    })
  } catch {
    return refused(truncateText(toStorableText(input), 10_000), 'they must be one JSON object')
  }
  if (problem !== null) return refused(truncateText(toStorableText(input), 10_000), problem)
  if (isDeeperThan(value, PAYLOAD_MAX_DEPTH))
    return refused('nested too deep', `they must be at most ${PAYLOAD_MAX_DEPTH} levels deep`)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refused(typeof value === 'string' ? truncateText(value, 10_000) : value, 'they must be one JSON object')
  }
  const repeated = findRepeatedName(input, value as ContextValue)
  if (repeated !== undefined) {
    const what = `an object has the name ${JSON.stringify(truncateText(repeated, 100))} twice`
    return refused(truncateText(toStorableText(input), 10_000), what)
  }
  return { value: value as Record<string, unknown>, fault: null }
}

function refused(value: unknown, reason: string): ParsedArguments {
  return { value, fault: `The arguments could not be read: ${reason}. Nothing was done; call the tool again.` }
}

/** Data that the provider must get back with the next question, such as the signature of a reasoning part. */
function toProviderOptions(part: ModelAnswer['parts'][number]): Pick<ModelAnswerPart, 'provider_options'> {
  const options = Object.entries(part.providerMetadata ?? {}).filter(([, values]) => Object.keys(values).length > 0)
  return options.length > 0
    ? { provider_options: Object.fromEntries(options) as Record<string, Record<string, unknown>> }
    : {}
}
