import type { JournalStep, ModelAnswerPart, ModelAnswerStep, NewJournalStep } from '@workflow-service/contract'
import type { AssistantContent, ModelMessage, ToolContent } from 'ai'
import { indexToolResults } from '../agent-steps.ts'
import type { AgentRun } from '../agent.ts'
import { markUntrusted, UNTRUSTED_TEXT_RULE } from '../untrusted-text.ts'
import { END_RUN, SEARCH_SOURCES } from './model-tools.ts'
import type { PromptHistory } from './session-history.ts'

/**
 * The system prompt. It contains no key, no URL and no secret: none is known here. It has nothing that differs between runs of a
 * workflow, so that their prompts begin alike, which providers cache.
 */
export function formatInstructions(
  { workflow }: Pick<AgentRun['run'], 'workflow'>,
  sourcesWithoutTool: number,
  toolNotes = '',
): string {
  const { name, description } = workflow
  return `You execute one run of a workflow on your own; there is no one to ask. The workflow's purpose and task:

# ${name}
${description}

# Rules
- Call a tool that sends a payload only when the workflow asks for it. Each call sends one request at once, and it cannot be taken back: never send the same payload twice.
- Fill payloads from the context, the files and the session so far. Invent nothing: where a value is missing, use "", 0, false, null or an empty list, whichever the schema allows.
- A payload that was not accepted may be corrected and sent again if that can help.
- Only a call of ${END_RUN} ends the run; a text does not. Call it when nothing is left to do and all results are known: "done" if payloads were accepted, "nothing_to_do" if the workflow asks for none, "failed" if the task could not be done.
- ${UNTRUSTED_TEXT_RULE}${
    sourcesWithoutTool === 0
      ? ''
      : `\n- There are ${sourcesWithoutTool} more webhook sources without a tool. If the workflow needs one of them, find it with ${SEARCH_SOURCES}: it gets a tool.`
  }${toolNotes}`
}

function formatTime(time: string): string {
  const date = new Date(time)
  const weekday = date.toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' })
  return `${date.toISOString().slice(0, 19)}Z (UTC), a ${weekday}`
}

/** The first user message: the session so far, the time of acceptance, the trigger's input message, then the context. */
export function formatFirstMessage(
  { inputMessage, context, sessionId, acceptedAt }: AgentRun['run'],
  history: PromptHistory,
): string {
  const leftOut = history.totalRuns - history.shownRuns
  return [
    history.text &&
      `This happened earlier in the session, oldest first:\n${markUntrusted('session so far', history.text, sessionId)}`,
    leftOut > 0 ? `${leftOut} older runs of the session are not shown.` : '',
    `The run was accepted at ${formatTime(acceptedAt)}. Dates such as "today" refer to this time.`,
    inputMessage,
    context && markUntrusted('context', context, sessionId),
    inputMessage || context ? '' : 'The run was started by the schedule, without a context.',
  ]
    .filter((text) => text !== '')
    .join('\n\n')
}

const CALL_A_TOOL = `Your answer called no tool, so nothing was done and the run has not ended. Call a tool if something is left to do; otherwise call ${END_RUN}.`

/** Builds the conversation from the journal alone, so that a resumed run has the same conversation. */
export function toMessages(first: string, steps: readonly (JournalStep | NewJournalStep)[]): ModelMessage[] {
  const messages: ModelMessage[] = [{ role: 'user', content: first }]
  const results = indexToolResults(steps)
  for (const step of steps) {
    if (step.kind !== 'model_answer') continue
    // No API accepts an empty message.
    if (step.data.parts.length > 0) {
      messages.push({ role: 'assistant', content: step.data.parts.map(toAssistantPart) })
    }
    const calls = listToolCalls(step.data)
    const content = calls.flatMap(({ call_id, tool }): ToolContent => {
      const result = results.get(call_id)
      if (!result) return []
      const output = { type: result.ok ? ('text' as const) : ('error-text' as const), value: result.text }
      return [{ type: 'tool-result', toolCallId: call_id, toolName: toToolName(tool), output }]
    })
    if (content.length > 0) messages.push({ role: 'tool', content })
    if (calls.length === 0) messages.push({ role: 'user', content: CALL_A_TOOL })
  }
  return messages
}

export type ToolCallPart = Extract<ModelAnswerPart, { type: 'tool_call' }>

export function listToolCalls(answer: ModelAnswerStep): ToolCallPart[] {
  return answer.parts.filter((part) => part.type === 'tool_call')
}

type AssistantPart = Exclude<AssistantContent, string>[number]

function toAssistantPart(part: ModelAnswerPart): AssistantPart {
  const options = part.provider_options ? { providerOptions: part.provider_options as ProviderOptions } : {}
  if (part.type !== 'tool_call') return { type: part.type, text: part.text, ...options }
  // Model APIs require an object here, even if the model wrote something else.
  const input = isObject(part.arguments) ? part.arguments : { unreadable: part.arguments }
  return { type: 'tool-call', toolCallId: part.call_id, toolName: toToolName(part.tool), input, ...options }
}

type ProviderOptions = Extract<AssistantPart, { type: 'text' }>['providerOptions']

/** A tool name that the model invented may contain characters that its own API rejects. */
function toToolName(name: string): string {
  return name.replace(/[^a-zA-Z0-9_-]/gu, '_').slice(0, 64) || 'unnamed'
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
