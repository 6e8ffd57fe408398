import { type ModelAnswerPart, type ModelAnswerStep, PAYLOAD_MAX_DEPTH, truncateText } from '@workflow-service/contract'
import { toStorableText } from '../../storable-text.ts'
import type { ModelAnswer } from './ask-model.ts'
import { listToolCalls, type ToolCallPart } from './conversation.ts'
import type { Toolbox } from './model-tools.ts'

/**
 * Converts an answer of the model to its journal step. Each tool call gets an id that is unique in the run, and an error
 * message instead of a webhook source if it cannot be executed.
 */
export function toAnswerStep(
  answer: ModelAnswer,
  context: {
    readonly turn: number
    readonly model: string
    readonly toolbox: Toolbox
    readonly earlierAnswers: readonly ModelAnswerStep[]
  },
): ModelAnswerStep {
  const { turn, model, toolbox, earlierAnswers } = context
  const usedIds = new Set(earlierAnswers.flatMap(listToolCalls).map(({ call_id }) => call_id))
  const parts: ModelAnswerPart[] = []
  for (const part of answer.content) {
    const options = toProviderOptions(part)
    if ((part.type === 'text' || part.type === 'reasoning') && (part.text !== '' || options.provider_options)) {
      parts.push({ type: part.type, text: toStorableText(part.text), ...options })
    } else if (part.type === 'tool-call') {
      // Some servers reuse call ids in each answer, or give none at all.
      const isUsable = /^[a-zA-Z0-9_-]{1,64}$/.test(part.toolCallId) && !usedIds.has(part.toolCallId)
      const call_id = isUsable ? part.toolCallId : unusedCallId(turn, usedIds)
      usedIds.add(call_id)
      const tool = truncateText(toStorableText(part.toolName), 200)
      parts.push({ type: 'tool_call', call_id, tool, ...checkCall(tool, part.input, toolbox), ...options })
    }
  }
  return {
    turn,
    model,
    parts,
    finish_reason: answer.finishReason,
    input_tokens: toTokenCount(answer.inputTokens),
    output_tokens: toTokenCount(answer.outputTokens),
  }
}

function unusedCallId(turn: number, usedIds: ReadonlySet<string>): string {
  for (let number = 1; ; number += 1) {
    const id = `call_${turn}_${number}`
    if (!usedIds.has(id)) return id
  }
}

function toTokenCount(tokens: number | null): number | null {
  return Number.isSafeInteger(tokens) ? tokens : null
}

function checkCall(
  tool: string,
  input: unknown,
  toolbox: Toolbox,
): Pick<ToolCallPart, 'source_id' | 'arguments' | 'fault'> {
  const entry = toolbox.find(tool)
  const source_id = entry?.kind === 'source' ? entry.source.id : null
  if (!entry) {
    const names = Object.keys(toolbox.definitions).join(', ') || 'none'
    return { source_id, arguments: toJournalInput(input), fault: `There is no such tool. The tools are: ${names}.` }
  }
  if (typeof input !== 'object' || input === null || Array.isArray(input) || isTooDeep(input, 1)) {
    const fault = `The arguments could not be read: they must be one JSON object, at most ${PAYLOAD_MAX_DEPTH} levels deep. Nothing was done; call the tool again.`
    return { source_id, arguments: toJournalInput(input), fault }
  }
  return { source_id, arguments: input, fault: null }
}

/** Arguments that could not be used, in a form that the journal accepts. */
function toJournalInput(input: unknown): unknown {
  if (typeof input === 'string') return truncateText(toStorableText(input), 10_000)
  return isTooDeep(input, 1) ? 'nested too deep' : (input ?? null)
}

function isTooDeep(value: unknown, level: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return level > PAYLOAD_MAX_DEPTH || Object.values(value).some((item) => isTooDeep(item, level + 1))
}

/** Data that the provider must get back with the next question, such as the signature of a reasoning part. */
function toProviderOptions(part: ModelAnswer['content'][number]): Pick<ModelAnswerPart, 'provider_options'> {
  const metadata = 'providerMetadata' in part ? part.providerMetadata : undefined
  const options = Object.entries(metadata ?? {}).filter(([, values]) => Object.keys(values).length > 0)
  return options.length > 0
    ? { provider_options: Object.fromEntries(options) as Record<string, Record<string, unknown>> }
    : {}
}
