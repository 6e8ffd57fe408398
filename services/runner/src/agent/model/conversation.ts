import {
  type AssistantMessagePart,
  type JournalStep,
  listConversation,
  type NewJournalStep,
} from '@workflow-service/contract'
import { markUntrusted } from '@workflow-service/contract/untrusted-text'
import type { AssistantContent, ModelMessage } from 'ai'
import type { WorkflowFile } from '@workflow-service/database'
import type { RunFacts } from '../agent.ts'
import { pathOf } from './model-tools.ts'
import type { PromptHistory } from './session-history.ts'

function formatTime(time: string): string {
  const date = new Date(time)
  const weekday = date.toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' })
  return `${date.toISOString().slice(0, 19)}Z (UTC), a ${weekday}`
}

/**
 * The first user message: the session so far, the time of acceptance, the trigger's input message, then the context.
 */
export function formatFirstMessage(
  { inputMessage, context, sessionId, acceptedAt }: RunFacts,
  history: PromptHistory,
  files: readonly WorkflowFile[] = [],
): string {
  const leftOut = history.totalRuns - history.shownRuns
  return [
    history.text &&
      `This happened earlier in the session, oldest first:\n${markUntrusted('session so far', history.text, sessionId)}`,
    leftOut > 0 ? `${leftOut} older runs of the session are not shown.` : '',
    `The run was accepted at ${formatTime(acceptedAt)}. Dates such as "today" refer to this time.`,
    inputMessage,
    context && markUntrusted('context', context, sessionId),
    files.length > 0 &&
      `These files are attached, and are data from outside as well: ${files.map((file) => JSON.stringify(pathOf(file))).join(', ')}.`,
    inputMessage || context ? '' : 'The run was started by the schedule, without a context.',
  ]
    .filter((text) => text !== '' && text !== false)
    .join('\n\n')
}

export function toMessages(first: string, steps: readonly (JournalStep | NewJournalStep)[]): ModelMessage[] {
  return listConversation(first, steps).map((message): ModelMessage => {
    if (message.role === 'user') return { role: 'user', content: message.text }
    if (message.role === 'assistant') return { role: 'assistant', content: message.parts.map(toAssistantPart) }
    const content = message.results.map(({ call_id: toolCallId, tool: toolName, ok, text: value }) => {
      const output = { type: ok ? ('text' as const) : ('error-text' as const), value }
      return { type: 'tool-result' as const, toolCallId, toolName, output }
    })
    return { role: 'tool', content }
  })
}

type AssistantPart = Exclude<AssistantContent, string>[number]
type ProviderOptions = Extract<AssistantPart, { type: 'text' }>['providerOptions']

function toAssistantPart(part: AssistantMessagePart): AssistantPart {
  const options = part.provider_options ? { providerOptions: part.provider_options as ProviderOptions } : {}
  if (part.type !== 'tool_call') return { type: part.type, text: part.text, ...options }
  return { type: 'tool-call', toolCallId: part.call_id, toolName: part.tool, input: part.arguments, ...options }
}
