import { type ModelAnswerStep, type NewJournalStep, truncateText } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { RunError } from '../../run-errors.ts'
import type { ModelConfig } from '../agent-settings.ts'
import { type AgentSteps, indexToolResults, listToolResults, openAgentSteps } from '../agent-steps.ts'
import type { Agent, AgentRun } from '../agent.ts'
import { createAskModel } from './ask-model.ts'
import { askWithRetries, type ModelClock, systemClock } from './ask-with-retries.ts'
import { formatFirstMessage, formatInstructions, listToolCalls, type ToolCallPart, toMessages } from './conversation.ts'
import { type DeliveryCall, describeOutcome, isDeliveryCall, sendDelivery } from '../deliveries.ts'
import { toAnswerStep } from './model-answer.ts'
import { MAX_DELIVERIES_PER_RUN } from './model-limits.ts'
import { createToolbox, runFileTool, type Toolbox } from './model-tools.ts'
import { selectSources } from './select-sources.ts'
import { formatHistory, type PromptHistory } from './session-history.ts'
import { startText } from '../start-text.ts'

/** Model answers per run at most. */
export const MAX_TURNS = 20

export interface AgentHooks {
  /** Called after an answer was written to the journal; null where the model reported no number of tokens. */
  readonly onModelUsage?: (usage: { model: string; inputTokens: number | null; outputTokens: number | null }) => void
}

/**
 * Creates the agent that uses a model. It asks for one answer at a time, writes the answer to the journal, and then
 * executes the answer's tool calls in order. A resumed run continues with the tool calls in the journal, and asks the
 * model only for answers that the journal does not have.
 *
 * The run succeeds when the model gives an answer without tool calls. It fails when it sent payloads and none was
 * accepted, when the model refuses, is cut off or is unavailable, and after MAX_TURNS answers.
 */
export function createModelAgent(config: ModelConfig, hooks: AgentHooks = {}, clock: ModelClock = systemClock): Agent {
  const ask = createAskModel(config, clock.now)
  const model = `${config.provider}:${config.modelName}`
  return async (run) => {
    run.signal.throwIfAborted()
    const steps = openAgentSteps(run)
    const [{ available, leftOut }, files] = await Promise.all([selectSources(run), run.listFiles()])
    const toolbox = createToolbox(available, files)
    const history = await formatHistory(run, config.historyTokens)
    if (steps.all.length === 0) await steps.append(...firstSteps(run, model, leftOut.length, history, config))

    for (;;) {
      const answers = steps.all.flatMap((step) => (step.kind === 'model_answer' ? [step.data] : []))
      const last = answers.at(-1)
      if (last) {
        failIfIncomplete(last)
        await executeToolCalls(run, steps, toolbox, last)
        if (listToolCalls(last).length === 0) {
          failIfNothingAccepted(steps)
          return
        }
      }
      if (answers.length >= MAX_TURNS) {
        throw new RunError('too_many_turns', `The model was not done after ${MAX_TURNS} answers`)
      }
      run.signal.throwIfAborted()
      const question = {
        instructions: formatInstructions(run.run.workflow, leftOut),
        messages: toMessages(formatFirstMessage(run.run, history), steps.all),
        tools: toolbox.definitions,
      }
      const startedMs = performance.now()
      const answer = await askWithRetries(ask, question, {
        retryMs: config.retryMs,
        clock,
        signal: run.signal,
        abort: run.abort,
        onRetry: (text) => steps.append({ kind: 'note', data: { code: 'model_retry', text } }),
      })
      const data = toAnswerStep(answer, {
        turn: answers.length + 1,
        model,
        toolbox,
        earlierAnswers: answers,
        latencyMs: performance.now() - startedMs,
      })
      await steps.append({ kind: 'model_answer', data })
      hooks.onModelUsage?.({ model, inputTokens: data.input_tokens, outputTokens: data.output_tokens })
    }
  }
}

function firstSteps(
  run: AgentRun,
  model: string,
  leftOut: number,
  { shownRuns, totalRuns }: PromptHistory,
  { historyTokens }: ModelConfig,
): NewJournalStep[] {
  const steps: NewJournalStep[] = [{ kind: 'message', data: { agent: model, text: startText(run.run) } }]
  if (shownRuns < totalRuns) {
    const text = `The session has ${totalRuns} earlier runs; the model sees the newest ${shownRuns}, since more would exceed AGENT_HISTORY_TOKENS (${historyTokens}).`
    steps.push({ kind: 'note', data: { code: 'history_shortened', text } })
  }
  if (leftOut > 0) {
    const text = `The organization has more webhook sources than a model accepts as tools: ${leftOut} of them are left out. Sources that the workflow's description names are included first.`
    steps.push({ kind: 'note', data: { code: 'sources_left_out', text } })
  }
  return steps
}

/** Fails the run for an answer that is cut off or refused, before any of its tool calls is executed. */
function failIfIncomplete(answer: ModelAnswerStep): void {
  if (answer.finish_reason === 'length') {
    throw new RunError(
      'model_answer_cut_off',
      `The model's answer ${answer.turn} was cut off at its length limit, so none of its tool calls was executed; raise AGENT_MAX_OUTPUT_TOKENS or make the workflow's task smaller`,
    )
  }
  if (answer.finish_reason === 'content-filter') {
    const text = answer.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ')
    throw new RunError('model_refused', `The model refused${text ? `: ${truncateText(text, 300)}` : ''}`)
  }
}

function failIfNothingAccepted(steps: AgentSteps): void {
  const deliveries = listToolResults(steps.all).flatMap(({ delivery }) => (delivery ? [delivery] : []))
  const last = deliveries.at(-1)
  if (!last || deliveries.some(({ outcome }) => outcome === 'accepted')) return
  throw new RunError(`delivery_${last.outcome}`, describeOutcome(last))
}

/** Executes, in order, the answer's tool calls that have no result in the journal. */
async function executeToolCalls(
  run: AgentRun,
  steps: AgentSteps,
  toolbox: Toolbox,
  answer: ModelAnswerStep,
): Promise<void> {
  const results = indexToolResults(steps.all)
  const planned = new Map(listPlannedDeliveries(steps).map((call) => [call.call_id, call]))
  let deliveries = planned.size
  for (const part of listToolCalls(answer)) {
    if (results.has(part.call_id)) continue
    run.signal.throwIfAborted()
    if (part.fault !== null) {
      await refuseCall(steps, part, part.fault)
    } else if (part.source_id === null) {
      await executeFileTool(run, steps, part)
    } else if (planned.has(part.call_id)) {
      await steps.append(await sendDelivery(run, planned.get(part.call_id)!))
    } else if (deliveries >= MAX_DELIVERIES_PER_RUN) {
      await refuseCall(steps, part, DELIVERY_LIMIT_REACHED)
    } else {
      deliveries += 1
      const call = await planDelivery(steps, toolbox, part, part.source_id)
      await steps.append(await sendDelivery(run, call))
    }
  }
}

const DELIVERY_LIMIT_REACHED = `Nothing was sent: this run has reached its limit of ${MAX_DELIVERIES_PER_RUN} payloads. It cannot send more; say what is left undone.`

async function refuseCall(steps: AgentSteps, { call_id, tool }: ToolCallPart, reason: string): Promise<void> {
  await steps.append({ kind: 'tool_result', data: { call_id, tool, ok: false, text: reason } })
}

async function executeFileTool(run: AgentRun, steps: AgentSteps, part: ToolCallPart): Promise<void> {
  const { call_id, tool } = part
  const { ok, text } = await runFileTool(run, tool, part.arguments as Record<string, unknown>)
  await steps.append(
    { kind: 'tool_call', data: { call_id, tool, arguments: part.arguments } },
    { kind: 'tool_result', data: { call_id, tool, ok, text } },
  )
}

/** The deliveries in the journal, sent or about to be. */
function listPlannedDeliveries(steps: AgentSteps): DeliveryCall[] {
  return steps.all.flatMap((step) => (step.kind === 'tool_call' && isDeliveryCall(step.data) ? [step.data] : []))
}

/** Writes the payload and its delivery id to the journal before it is sent. */
async function planDelivery(
  steps: AgentSteps,
  toolbox: Toolbox,
  part: ToolCallPart,
  sourceId: string,
): Promise<DeliveryCall> {
  const args = part.arguments as Record<string, unknown>
  // Answers that were recorded before they had the source's name have no payload either.
  const payload = part.payload ?? (part.source_name === undefined ? toolbox.toPayload(sourceId, args) : args)
  const delivery = {
    id: newId(),
    source_id: sourceId,
    source_name: part.source_name ?? toolbox.sourceName(sourceId),
    payload,
  }
  const call = { call_id: part.call_id, tool: part.tool, delivery }
  await steps.append({ kind: 'tool_call', data: call })
  return call
}
