import type { JournalStep, ModelAnswerPart, ModelAnswerStep, NewJournalStep } from '@workflow-service/contract'
import type { AssistantContent, ModelMessage, ToolContent } from 'ai'
import type { AgentRun } from './agent.ts'
import { UNTRUSTED_TEXT_RULE, markUntrusted } from './untrusted-text.ts'
import type { PromptHistory } from './session-history.ts'

/** What a model is told once, before everything else. Neither keys nor URLs nor secrets are known here. */
export function instructionsFor({ name, description }: AgentRun['run']['workflow']): string {
  return `You carry out one run of a workflow, on your own: nobody answers questions. What the workflow is for and what to do:

# ${name}
${description}

# Rules
- Call a tool that sends a payload only when the workflow asks for it. Each call sends one request at once, and nothing takes it back: never send the same twice.
- Fill payloads from the context, the files and the session so far. Invent nothing: where nothing is said, use "", 0, false, null or an empty list, whichever the schema allows.
- A payload that was not accepted may be corrected and sent again if that can help.
- When there is nothing left to do, say in one or two sentences what was done, without calling a tool.
- ${UNTRUSTED_TEXT_RULE}`
}

/** The first message: the session so far, then the trigger's input message followed by the context. */
export function firstMessage({ inputMessage, context }: AgentRun['run'], history: PromptHistory): string {
  const leftOut = history.totalRuns - history.shownRuns
  return [
    history.text &&
      `This happened earlier in the session, oldest first:\n${markUntrusted('session so far', history.text)}`,
    leftOut > 0 ? `${leftOut} older runs of the session are not shown.` : '',
    inputMessage,
    context && markUntrusted('context', context),
    inputMessage || context ? '' : 'The run was started by the schedule, without a context.',
  ]
    .filter((text) => text !== '')
    .join('\n\n')
}

/** The whole conversation as the AI SDK wants it, made of the journal alone: the same journal, the same conversation. */
export function toMessages(first: string, steps: readonly (JournalStep | NewJournalStep)[]): ModelMessage[] {
  const results = new Map(
    steps.flatMap((step) => (step.kind === 'tool_result' ? [[step.data.call_id, step.data]] : [])),
  )
  const messages: ModelMessage[] = [{ role: 'user', content: first }]
  for (const step of steps) {
    if (step.kind !== 'model_answer') continue
    messages.push({ role: 'assistant', content: step.data.parts.map(toAssistantPart) })
    const content = toolCallsOf(step.data).flatMap(({ call_id, tool }): ToolContent => {
      const result = results.get(call_id)
      const output = { type: result?.ok ? ('text' as const) : ('error-text' as const), value: result?.text ?? '' }
      return result ? [{ type: 'tool-result', toolCallId: call_id, toolName: toolName(tool), output }] : []
    })
    if (content.length > 0) messages.push({ role: 'tool', content })
  }
  return messages
}

export type ToolCallPart = Extract<ModelAnswerPart, { type: 'tool_call' }>

export function toolCallsOf(answer: ModelAnswerStep): ToolCallPart[] {
  return answer.parts.filter((part) => part.type === 'tool_call')
}

type AssistantPart = Exclude<AssistantContent, string>[number]

function toAssistantPart(part: ModelAnswerPart): AssistantPart {
  const options = part.provider_options ? { providerOptions: part.provider_options as ProviderOptions } : {}
  if (part.type !== 'tool_call') return { type: part.type, text: part.text, ...options }
  // Every API wants an object here, also where the model wrote none.
  const input = isObject(part.arguments) ? part.arguments : { unreadable: part.arguments }
  return { type: 'tool-call', toolCallId: part.call_id, toolName: toolName(part.tool), input, ...options }
}

type ProviderOptions = Extract<AssistantPart, { type: 'text' }>['providerOptions']

/** A tool that the model made up may have a name that its own API refuses to be told. */
function toolName(name: string): string {
  return name.replace(/[^a-zA-Z0-9_-]/gu, '_').slice(0, 64) || 'unnamed'
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
