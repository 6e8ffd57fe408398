import {
  isStorableText,
  type JournalStep,
  type ModelAnswerPart,
  type ModelAnswerStep,
  type NewJournalStep,
  PAYLOAD_MAX_DEPTH,
  truncateText,
} from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import type { ModelConfig } from './agent-settings.ts'
import { RunError } from '../run-errors.ts'
import type { Agent, AgentRun } from './agent.ts'
import { createAskModel, type ModelAnswer, type ModelClock } from './ask-model.ts'
import { firstMessage, instructionsFor, toMessages, type ToolCallPart, toolCallsOf } from './conversation.ts'
import { sendDelivery, type DeliveryCall, describeOutcome, isDeliveryCall, unansweredCalls } from './deliveries.ts'
import { createToolbox, type Toolbox, runFileTool } from './model-tools.ts'
import { startText } from './run-text.ts'
import { formatHistory, type PromptHistory } from './session-history.ts'

/** Issue and design section 6: how many answers of the model a run may take. */
export const MAX_TURNS = 20

/** What the agent tells of itself while it works. */
export interface AgentHooks {
  /** An answer of the model is in the journal; null where the model did not say how many tokens. */
  readonly onModelUsage?: (usage: { model: string; inputTokens: number | null; outputTokens: number | null }) => void
}

/** How a model is named in AGENT_MODEL, in the journal and in metrics. */
export function modelLabel({ provider, modelName }: ModelConfig): string {
  return `${provider}:${modelName}`
}

/**
 * The agent with a model. It owns the loop: the SDK is asked for single answers, each is in the journal before any of
 * its tool calls is carried out, and the calls are carried out in order. When resumed, it continues with the very same
 * calls, and asks the model only for answers that the journal does not hold.
 *
 * The run succeeds when the model ends with an answer without tool calls. It fails when none of the payloads that it
 * sent was accepted, with the reason of the last; when the model refuses, is cut off, needs more than MAX_TURNS or is
 * not to be had.
 */
export function createModelAgent(config: ModelConfig, hooks: AgentHooks = {}, clock?: ModelClock): Agent {
  const ask = createAskModel(config, clock)
  const model = modelLabel(config)
  return async (run) => {
    run.signal.throwIfAborted()
    const journal = openJournal(run)
    const [sources, files] = await Promise.all([run.listSources(), run.listFiles()])
    const toolbox = createToolbox(run.run, sources, files)
    const history = await formatHistory(run, config.historyTokens)
    if (journal.steps.length === 0) await journal.append(...beginning(run, model, toolbox, history, config))

    for (;;) {
      const answers = journal.steps.flatMap((step) => (step.kind === 'model_answer' ? [step.data] : []))
      const last = answers.at(-1)
      if (last) {
        failIfIncomplete(last)
        await executeToolCalls(run, journal, toolbox, last)
        if (toolCallsOf(last).length === 0) {
          failIfNothingAccepted(journal.steps)
          return
        }
      }
      if (answers.length >= MAX_TURNS) {
        throw new RunError('too_many_turns', `The model was not done after ${MAX_TURNS} answers`)
      }
      run.signal.throwIfAborted()
      const question = {
        instructions: instructionsFor(run.run.workflow),
        messages: toMessages(firstMessage(run.run, history), journal.steps),
        tools: toolbox.definitions,
      }
      const answer = await ask(question, {
        signal: run.signal,
        abort: run.abort,
        onRetry: (text) => journal.append({ kind: 'note', data: { code: 'model_retry', text } }),
      })
      const data = toAnswerStep(answer, { turn: answers.length + 1, model, toolbox, steps: journal.steps })
      await journal.append({ kind: 'model_answer', data })
      hooks.onModelUsage?.({ model, inputTokens: data.input_tokens, outputTokens: data.output_tokens })
    }
  }
}

interface Journal {
  readonly steps: readonly (JournalStep | NewJournalStep)[]
  append(...added: NewJournalStep[]): Promise<void>
}

function openJournal(run: AgentRun): Journal {
  const steps: (JournalStep | NewJournalStep)[] = [...run.steps]
  return {
    steps,
    async append(...added) {
      await run.append(added)
      steps.push(...added)
    },
  }
}

function beginning(
  run: AgentRun,
  model: string,
  toolbox: Toolbox,
  { shownRuns, totalRuns }: PromptHistory,
  { historyTokens }: ModelConfig,
): NewJournalStep[] {
  const steps: NewJournalStep[] = [{ kind: 'message', data: { agent: model, text: startText(run.run) } }]
  if (shownRuns < totalRuns) {
    const text = `The session has ${totalRuns} earlier runs; the model is told of the newest ${shownRuns}, since more would exceed AGENT_HISTORY_TOKENS (${historyTokens}).`
    steps.push({ kind: 'note', data: { code: 'history_shortened', text } })
  }
  if (toolbox.leftOut > 0) {
    const text = `The organization has more webhook sources than a model takes as tools: ${toolbox.leftOut} of them are left out. Those that the workflow's description names come first.`
    steps.push({ kind: 'note', data: { code: 'sources_left_out', text } })
  }
  return steps
}

/** Half an answer is no plan: none of its tool calls is carried out. */
function failIfIncomplete(answer: ModelAnswerStep): void {
  if (answer.finish_reason === 'length') {
    throw new RunError(
      'model_answer_cut_off',
      `The model's answer ${answer.turn} was cut off at its length limit, so none of its tool calls was carried out; raise AGENT_MAX_OUTPUT_TOKENS or ask the workflow for less`,
    )
  }
  if (answer.finish_reason === 'content-filter') {
    const said = answer.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ')
    throw new RunError('model_refused', `The model refused${said ? `: ${truncateText(said, 300)}` : ''}`)
  }
}

function failIfNothingAccepted(steps: Journal['steps']): void {
  const deliveries = steps.flatMap((step) =>
    step.kind === 'tool_result' && step.data.delivery ? [step.data.delivery] : [],
  )
  const last = deliveries.at(-1)
  if (!last || deliveries.some(({ outcome }) => outcome === 'accepted')) return
  throw new RunError(`delivery_${last.outcome}`, describeOutcome(last))
}

/** Carries out, in order, every tool call of the answer whose result the journal does not hold. */
async function executeToolCalls(
  run: AgentRun,
  journal: Journal,
  toolbox: Toolbox,
  answer: ModelAnswerStep,
): Promise<void> {
  for (const part of toolCallsOf(answer)) {
    if (journal.steps.some((step) => step.kind === 'tool_result' && step.data.call_id === part.call_id)) continue
    run.signal.throwIfAborted()
    if (part.fault !== null) {
      await journal.append({
        kind: 'tool_result',
        data: { call_id: part.call_id, tool: part.tool, ok: false, text: part.fault },
      })
    } else if (part.source_id === null) {
      await executeFileTool(run, journal, part)
    } else {
      const call = await planDelivery(journal, toolbox, part, part.source_id)
      await journal.append(await sendDelivery(run, call))
    }
  }
}

async function executeFileTool(
  run: AgentRun,
  journal: Journal,
  { call_id, tool, ...part }: ToolCallPart,
): Promise<void> {
  const { ok, text } = await runFileTool(run, tool, part.arguments as Record<string, unknown>)
  await journal.append(
    { kind: 'tool_call', data: { call_id, tool, arguments: part.arguments } },
    { kind: 'tool_result', data: { call_id, tool, ok, text } },
  )
}

/** The delivery's id is in the journal before the payload can leave; after a crash it is the one found there. */
async function planDelivery(
  journal: Journal,
  toolbox: Toolbox,
  part: ToolCallPart,
  sourceId: string,
): Promise<DeliveryCall> {
  const planned = unansweredCalls(journal.steps).find(({ call_id }) => call_id === part.call_id)
  if (planned && isDeliveryCall(planned)) return planned
  const payload = toolbox.toPayload(sourceId, part.arguments as Record<string, unknown>)
  const delivery = { id: newId(), source_id: sourceId, source_name: toolbox.sourceName(sourceId), payload }
  const call = { call_id: part.call_id, tool: part.tool, delivery }
  await journal.append({ kind: 'tool_call', data: call })
  return call
}

interface AnswerContext {
  readonly turn: number
  readonly model: string
  readonly toolbox: Toolbox
  readonly steps: Journal['steps']
}

function toAnswerStep(answer: ModelAnswer, place: AnswerContext): ModelAnswerStep {
  const usedIds = new Set(
    place.steps.flatMap((step) =>
      step.kind === 'model_answer' ? toolCallsOf(step.data).map(({ call_id }) => call_id) : [],
    ),
  )
  const parts: ModelAnswerPart[] = []
  for (const part of answer.content) {
    const options = toProviderOptions(part)
    if ((part.type === 'text' || part.type === 'reasoning') && (part.text !== '' || options.provider_options)) {
      parts.push({ type: part.type, text: toStorable(part.text), ...options })
    } else if (part.type === 'tool-call') {
      const call_id = uniqueCallId(part.toolCallId, usedIds, `call_${place.turn}_${parts.length + 1}`)
      usedIds.add(call_id)
      const tool = truncateText(toStorable(part.toolName), 200)
      parts.push({ type: 'tool_call', call_id, tool, ...judgeCall(tool, part.input, place.toolbox), ...options })
    }
  }
  return {
    turn: place.turn,
    model: place.model,
    parts,
    finish_reason: answer.finishReason,
    input_tokens: answer.inputTokens,
    output_tokens: answer.outputTokens,
  }
}

/** Some servers count their calls anew in each answer, or give no ids at all. */
function uniqueCallId(given: string, used: ReadonlySet<string>, otherwise: string): string {
  return /^[a-zA-Z0-9_-]{1,64}$/.test(given) && !used.has(given) ? given : otherwise
}

function judgeCall(
  tool: string,
  input: unknown,
  toolbox: Toolbox,
): Pick<ToolCallPart, 'source_id' | 'arguments' | 'fault'> {
  const entry = toolbox.find(tool)
  const source_id = entry?.kind === 'source' ? entry.source.id : null
  if (!entry) {
    const names = Object.keys(toolbox.definitions).join(', ') || 'none'
    return { source_id, arguments: toShownInput(input), fault: `There is no such tool. The tools are: ${names}.` }
  }
  if (typeof input !== 'object' || input === null || Array.isArray(input) || isTooDeep(input, 1)) {
    const fault = `The arguments could not be read: they must be one JSON object, at most ${PAYLOAD_MAX_DEPTH} levels deep. Nothing was done; call the tool again.`
    return { source_id, arguments: toShownInput(input), fault }
  }
  return { source_id, arguments: input, fault: null }
}

/** What could not be used, in a form that any journal holds. */
function toShownInput(input: unknown): unknown {
  if (typeof input === 'string') return truncateText(toStorable(input), 10_000)
  return isTooDeep(input, 1) ? 'nested too deep' : input
}

function isTooDeep(value: unknown, level: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return level > PAYLOAD_MAX_DEPTH || Object.values(value).some((item) => isTooDeep(item, level + 1))
}

function toProviderOptions(part: ModelAnswer['content'][number]): Pick<ModelAnswerPart, 'provider_options'> {
  const metadata = 'providerMetadata' in part ? part.providerMetadata : undefined
  const known = Object.entries(metadata ?? {}).filter(([, values]) => Object.keys(values).length > 0)
  return known.length > 0
    ? { provider_options: Object.fromEntries(known) as Record<string, Record<string, unknown>> }
    : {}
}

function toStorable(text: string): string {
  return isStorableText(text) ? text : text.toWellFormed().replaceAll('\u0000', '\uFFFD')
}
