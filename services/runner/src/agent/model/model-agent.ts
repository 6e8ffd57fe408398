import {
  END_RUN,
  fitRunPrompt,
  isNote,
  listToolCalls,
  type MessageStep,
  type ModelAnswerStep,
  type NewJournalStep,
  type RunPrompt,
  type ToolCallPart,
  toNote,
  truncateText,
} from '@workflow-service/contract'
import { formatSystemText } from '@workflow-service/contract/system-text'
import type { Logger, Tracing } from '@workflow-service/service-kit'
import type { Instructions, WorkflowFile } from '@workflow-service/database'
import { RunError } from '../../run-errors.ts'
import type { ModelConfig } from '../agent-settings.ts'
import { type AgentSteps, indexToolResults, listData, openAgentSteps, refuseCall, startText } from '../agent-steps.ts'
import type { Agent } from '../agent.ts'
import { attachFiles, findReferences } from './attach-files.ts'
import { askWithRetries, ModelOutageError } from './ask-with-retries.ts'
import { formatFirstMessage, toMessages } from './conversation.ts'
import { toAnswerStep } from './model-answer.ts'
import { ModelError } from './model-error.ts'
import { createModelChoice } from './model-choice.ts'
import { type ModelGate, OPEN_GATE } from './model-gate.ts'
import type { ModelQuestion } from './model-question.ts'
import { lookUp } from './look-up.ts'
import { listAnswers, listPaid, type ModelClock, type ModelRun, systemClock, type UsableModel } from './model-run.ts'
import { createToolbox, pathOf, runReadingTool, SEND_AGAIN } from './model-tools.ts'
import {
  failUnlessSuccessful,
  findEnding,
  findObstacle,
  hasAcceptedDelivery,
  isInterrupted,
  isUnusable,
} from './run-ending.ts'
import { MODEL_PROVIDERS } from './providers.ts'
import { selectSources } from './select-sources.ts'
import { deliver, listUncertain, sendAgain } from './send-payload.ts'
import { type EarlierRuns, findSummary, findUnsummarized, formatHistory, readEarlierRuns } from './session-history.ts'
import { costOfNextAnswer } from './spending.ts'
import { summarizeSession } from './summarize-session.ts'

/** Model answers per run at most. */
export const MAX_TURNS = 20

export interface AgentHooks {
  /** Called after an answer or a summary was written to the journal. */
  readonly onModelAnswer?: ModelRun['onModelAnswer']
  /** Spans of the requests to the model. Default: none. */
  readonly tracing?: Tracing
  /** The pace that all runners share. Default: none. */
  readonly modelGate?: ModelGate
  /** What sends the requests to the model. Default: Node's. */
  readonly fetch?: typeof fetch
  /** For the operator. Default: nothing is logged. */
  readonly logger?: Pick<Logger, 'info' | 'warn'>
}

/**
 * Creates the agent that uses the first of the models, and the next one while the API of one is unavailable. It asks
 * for one answer at a time, writes the answer to the journal, and then executes the answer's tool calls in order. A
 * resumed run continues with the tool calls in the journal, and asks the model only for answers that the journal does
 * not have.
 *
 * The tool `end_run` ends the run, and so do two texts in turn once a payload was accepted. The run fails when the
 * model says so, when a payload was not accepted and the model never tried again, when the model refuses, is cut off or
 * is unavailable, when two other answers in turn bring it no further, after MAX_TURNS answers, and when it has used its
 * tokens.
 */
export function createModelAgent(
  models: readonly ModelConfig[],
  hooks: AgentHooks = {},
  clock: ModelClock = systemClock,
): Agent {
  const chooseModels = createModelChoice(models, hooks, clock)
  return async (run) => {
    run.interrupted.throwIfAborted()
    const { id: run_id, organizationId: organization_id } = run
    const opened = openAgentSteps(run)
    const first = chooseModels(run, await run.readModelKeys())
    let ctx: ModelRun = {
      ...findModel(first, opened),
      run,
      steps: opened,
      gate: hooks.modelGate ?? OPEN_GATE,
      clock,
      onModelAnswer: hooks.onModelAnswer ?? (() => {}),
      log: (level, event, fields) =>
        hooks.logger?.[level]({ run_id, organization_id, model: ctx.config.name, ...fields }, event),
    }
    const { steps } = ctx
    await settleLastAnswer(ctx)
    const files = await run.listFiles()
    let prompt = await createPrompt(ctx, files)
    if (steps.all.every(isPreparation)) {
      const added = firstSteps(ctx, prompt)
      if (added.length > 0) await steps.append(...added)
    }

    for (;;) {
      const last = listAnswers(steps).at(-1)
      if (last) {
        failIfIncomplete(ctx, last)
        const before = promptBasis(steps)
        await executeToolCalls(ctx, last)
        const ending = findEnding(steps.all)
        if (ending) return failUnlessSuccessful(steps.all, ending)
        if (isUnusableTwice(steps)) return await endUnusable(ctx)
        if (promptBasis(steps) !== before) prompt = await createPrompt(ctx, files)
      }
      failIfSpent(ctx)
      run.interrupted.throwIfAborted()
      try {
        await askModel(ctx, prompt)
      } catch (error) {
        if (error instanceof ModelOutageError && ctx.fallback) {
          ctx = await continueWith(ctx, ctx.fallback, error)
        } else if (error instanceof ModelError) {
          await halveHistory(ctx, prompt, error)
          prompt = await createPrompt(ctx, files)
        } else {
          throw error
        }
      }
    }
  }
}

/** The model that gives the next answer: the chosen one, or the fallback with which the run continued last. */
function findModel(first: UsableModel, { all }: AgentSteps): UsableModel {
  const name = all.findLast((step) => isNote(step, 'model_fallback'))?.data
  for (let each: UsableModel | undefined = first; each; each = each.fallback) {
    if (name && 'model' in name && each.config.name === name.model) return each
  }
  return first
}

/** Notes that the fallback gives the next answers, because of this error. */
async function continueWith(ctx: ModelRun, fallback: UsableModel, { message }: Error): Promise<ModelRun> {
  const { name } = fallback.config
  const text = `${message}. The run continues with ${name} in place of ${ctx.config.name}.`
  await ctx.steps.append(toNote('model_fallback', text, { model: name }))
  ctx.log('warn', 'model.fallback_used', { fallback: name })
  return { ...ctx, ...fallback }
}

/** Ends the reservation of the last answer, whose cost is in the journal. An earlier runner may have done it. */
async function settleLastAnswer({ run, steps }: ModelRun): Promise<void> {
  const last = listPaid(steps).at(-1)
  if (last?.cost_micros !== undefined) await run.settleCost(last.turn, last.cost_micros)
}

function listFoundSources({ all }: AgentSteps): string[] {
  return listData(all, 'tool_result').flatMap(({ found_source_ids = [] }) => found_source_ids)
}

/** What the steps change in the prompt's tools. */
function promptBasis(steps: AgentSteps): string {
  return [...listFoundSources(steps), ...listUncertain(steps.all).map(({ call_id }) => call_id)].join()
}

/** What the model can use in its next answer. */
type ModelPrompt = Awaited<ReturnType<typeof createPrompt>>

async function createPrompt(ctx: ModelRun, files: readonly WorkflowFile[]) {
  const { run, steps, config } = ctx
  const sources = await selectSources(run, listFoundSources(steps))
  const toolbox = createToolbox(sources.available, files, {
    hasSearch: sources.searchable.length > 0,
    again: listUncertain(steps.all),
    lookups: sources.lookups,
  })
  const isHalved = steps.hasNote('history_halved')
  const instructions = await readInstructions(ctx)
  const earlier = await readHistory(ctx, instructions)
  const history = formatHistory(earlier, { budgetTokens: config.historyTokens, isHalved })
  return { sources, toolbox, history, instructions, attached: findReferences(run, files) }
}

/** Those that the run follows: the newest ones in place of a version that is no longer kept. */
async function readInstructions({ run, steps }: ModelRun): Promise<Instructions | undefined> {
  const begun = findMessage(steps)
  if (!begun) return await run.readInstructions()
  const version = begun.instructions_version
  if (version === undefined) return undefined
  return (await run.readInstructions(version)) ?? (await run.readInstructions())
}

/** The earlier runs; before its first answer, the model summarizes them if they are too long. */
async function readHistory(ctx: ModelRun, instructions: Instructions | undefined): Promise<EarlierRuns> {
  const { run, steps, config } = ctx
  const readRuns = () => readEarlierRuns(run, findSummary(steps.all))
  const earlier = await readRuns()
  const isDecided = listAnswers(steps).length > 0 || findSummary(steps.all) || steps.hasNote('summary_failed')
  const unsummarized = isDecided ? undefined : findUnsummarized(earlier, config)
  if (!unsummarized) return earlier
  // The first step of every run: by it, another agent or release knows that a model began the run.
  if (!findMessage(steps)) await steps.append(toMessage(ctx, instructions))
  await summarizeSession(ctx, unsummarized)
  return findSummary(steps.all) ? await readRuns() : earlier
}

/** The beginning of the run, if it is in the journal. */
function findMessage({ all }: AgentSteps): MessageStep | undefined {
  return listData(all, 'message')[0]
}

function isPreparation(step: AgentSteps['all'][number]): boolean {
  return isNote(step, 'summary_failed') || ['message', 'session_summary'].includes(step.kind)
}

function toMessage({ run, config }: ModelRun, instructions: Instructions | undefined): NewJournalStep {
  const version = instructions ? { instructions_version: instructions.number } : {}
  return { kind: 'message', data: { agent: config.name, text: startText(run), ...version } }
}

/** What the journal begins with, apart from the message and the summary if it has them already. */
function firstSteps(
  ctx: ModelRun,
  { history: { shownRuns, totalRuns }, sources: { reason }, instructions, attached }: ModelPrompt,
): NewJournalStep[] {
  const steps: NewJournalStep[] = findMessage(ctx.steps) ? [] : [toMessage(ctx, instructions)]
  if (shownRuns < totalRuns) {
    const text = `The session has ${totalRuns} earlier runs; the model sees the newest ${shownRuns}, since more would exceed ${ctx.config.historyTokens} tokens.`
    steps.push(toNote('history_shortened', text))
  }
  if (reason !== null) steps.push(toNote('sources_selected', reason))
  if (attached.length > 0) {
    const text = `The model reads the files ${attached.map((file) => JSON.stringify(pathOf(file))).join(', ')}.`
    steps.push(toNote('files_attached', text))
  }
  return steps
}

/** Asks for the next answer, and writes it to the journal. */
async function askModel(ctx: ModelRun, prompt: ModelPrompt): Promise<void> {
  const { run, steps, config } = ctx
  const instructions = formatSystemText({
    ...run.workflow,
    instructions: prompt.instructions?.text ?? '',
    toolNotes: prompt.toolbox.notes,
    sourcesWithoutTool: prompt.sources.searchable.length,
  })
  const message = formatFirstMessage(run, prompt.history, prompt.attached)
  const tools = prompt.toolbox.definitions
  await run.recordPrompt(fitRunPrompt({ instructions, message, tools: listDefinitions(tools) }))
  const { files, release } = await attachFiles(run, config, prompt.attached)
  const messages = toMessages(message, ofModel(ctx))
  const question: ModelQuestion = { instructions, messages, tools, files }
  const cost = costOfNextAnswer(ctx, listAnswers(steps).length + 1)
  const answered = await askWithRetries(ctx, question, cost).finally(release)
  const data = toAnswerStep(ctx, { ...answered, cost: cost.of(answered.answer.usage) }, prompt.toolbox)
  await steps.append({ kind: 'model_answer', data })
  ctx.onModelAnswer(data)
  await settleLastAnswer(ctx)
}

/**
 * The steps without what only the models, or accounts, that gave the answers understand: reasoning, and data such as
 * its signatures.
 */
function ofModel({ steps, model, config }: ModelRun): AgentSteps['all'] {
  const { name, isOwnKey = false, provider } = config
  const isOfAnyAccount = !MODEL_PROVIDERS[provider].hasReasoningOfAccount
  return steps.all.map((step) => {
    if (step.kind !== 'model_answer') return step
    const { model: by, model_name: byName = by, key_of: keyOf } = step.data
    const isOfAccount = byName === name && (keyOf === 'organization') === isOwnKey
    if (by === model && (isOfAnyAccount || isOfAccount)) return step
    const parts = step.data.parts.flatMap((part) => {
      const { provider_options: _options, ...rest } = part
      return rest.type === 'reasoning' ? [] : [rest]
    })
    return { ...step, data: { ...step.data, parts } }
  })
}

/** The tools as people read them. */
function listDefinitions(tools: ModelQuestion['tools']): RunPrompt['tools'] {
  return Object.entries(tools).map(([name, { description, inputSchema }]) => {
    const schema = typeof inputSchema === 'object' && 'jsonSchema' in inputSchema ? inputSchema.jsonSchema : null
    return { name, description: String(description ?? ''), schema }
  })
}

/**
 * Notes that the model gets half of the session's earlier runs, because its API refused the prompt as too long.
 * @throws RunError if there are no earlier runs to leave out, or half of them already are.
 */
async function halveHistory(
  { steps }: ModelRun,
  { history }: ModelPrompt,
  { code, message }: ModelError,
): Promise<void> {
  if (history.shownRuns === 0 || steps.hasNote('history_halved')) throw new RunError(code, message)
  const text = `${message}. The model sees half of the earlier runs that it saw before.`
  await steps.note('history_halved', text)
}

/** Fails the run for an answer that is cut off or refused, before any of its tool calls is executed. */
function failIfIncomplete({ log }: ModelRun, answer: ModelAnswerStep): void {
  if (answer.finish_reason === 'length') {
    log('warn', 'model.limit_reached', { setting: 'AGENT_MAX_OUTPUT_TOKENS' })
    throw new RunError(
      'model_answer_cut_off',
      `The model's answer ${answer.turn} was cut off at its length limit, so none of its tool calls was executed; make the workflow's task smaller`,
    )
  }
  if (answer.finish_reason === 'content-filter') {
    const text = answer.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ')
    throw new RunError('model_refused', `The model refused${text ? `: ${truncateText(text, 300)}` : ''}`)
  }
}

function isUnusableTwice(steps: AgentSteps): boolean {
  const lastTwo = listAnswers(steps).slice(-2)
  return lastTwo.length === 2 && lastTwo.every((answer) => isUnusable(steps.all, answer))
}

/**
 * Ends a run whose model gave two unusable answers in turn. It has succeeded if its payloads were accepted and the
 * model only wrote text: smaller models forget `end_run`.
 * @throws RunError if it has not.
 */
async function endUnusable({ steps }: ModelRun): Promise<void> {
  const last = listAnswers(steps).at(-1)
  if (!last) return
  const hasOnlyText = !isInterrupted(last) && listToolCalls(last).length === 0
  if (hasOnlyText && hasAcceptedDelivery(steps.all)) {
    failUnlessSuccessful(steps.all, { status: 'done', reason: '' })
    const text = `The model wrote texts in place of a call of ${END_RUN}. The run has succeeded, because its payloads were accepted.`
    if (!steps.hasNote('ended_without_call')) await steps.note('ended_without_call', text)
    return
  }
  const how = isInterrupted(last)
    ? `ended for an unknown reason (${last.raw_finish_reason ?? last.finish_reason})`
    : hasOnlyText
      ? 'called no tool'
      : 'claimed to be done although no payload was accepted'
  throw new RunError('model_answer_invalid', `The model was asked again, and its answer ${last.turn} ${how}`)
}

function failIfSpent({ config: { runTokens }, steps, log }: ModelRun): void {
  if (listAnswers(steps).length >= MAX_TURNS) {
    throw new RunError('too_many_turns', `The model was not done after ${MAX_TURNS} answers`)
  }
  // Without those of a summary, which `runTokens` bounds by itself.
  const used = listAnswers(steps).reduce(
    (sum, answer) => sum + (answer.input_tokens ?? 0) + (answer.output_tokens ?? 0),
    0,
  )
  if (used >= runTokens) {
    log('warn', 'model.limit_reached', { setting: 'AGENT_RUN_TOKENS' })
    throw new RunError(
      'token_budget_exceeded',
      `The model was not done after ${used} tokens; a run may use ${runTokens}`,
    )
  }
}

/** Executes, in order, the answer's tool calls that have no result in the journal; `end_run` after all others. */
async function executeToolCalls(ctx: ModelRun, answer: ModelAnswerStep): Promise<void> {
  const { run, steps } = ctx
  const results = indexToolResults(steps.all)
  const calls = listToolCalls(answer)
  for (const part of [...calls.filter((call) => !isEnd(call)), ...calls.filter(isEnd)]) {
    if (results.has(part.call_id)) continue
    run.interrupted.throwIfAborted()
    if (isInterrupted(answer)) {
      const reason = answer.raw_finish_reason ?? answer.finish_reason
      const text = `Nothing was done: the answer ended early (${reason}). Call the tool again.`
      await refuseCall(steps, part, 'invalid_call', text)
    } else if (part.fault !== null) {
      await refuseCall(steps, part, 'invalid_call', part.fault)
    } else if (isEnd(part)) {
      await endRun(steps, answer, part)
    } else if (part.tool === SEND_AGAIN) {
      await sendAgain(ctx, part)
    } else if (part.lookup) {
      await lookUp(ctx, part, part.lookup)
    } else if (part.source_id === null) {
      const args = part.arguments as Record<string, unknown>
      await appendCall(steps, part, await runReadingTool(run, part.tool, args))
    } else {
      await deliver(ctx, part, part.source_id)
    }
  }
}

function isEnd({ tool }: ToolCallPart): boolean {
  return tool === END_RUN
}

async function endRun(steps: AgentSteps, answer: ModelAnswerStep, part: ToolCallPart): Promise<void> {
  const obstacle = findObstacle(steps.all, answer, part)
  if (obstacle !== undefined) return await refuseCall(steps, part, 'cannot_end', obstacle)
  await appendCall(steps, part, { ok: true, text: 'The run has ended.' })
}

/** Appends a call of a tool that sends nothing, with its result. */
async function appendCall(
  steps: AgentSteps,
  { call_id, tool, arguments: args }: ToolCallPart,
  result: Awaited<ReturnType<typeof runReadingTool>>,
): Promise<void> {
  await steps.append(
    { kind: 'tool_call', data: { call_id, tool, arguments: args } },
    { kind: 'tool_result', data: { call_id, tool, ...result } },
  )
}
