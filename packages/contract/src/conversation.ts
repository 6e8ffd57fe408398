import type { RunPromptsOut } from './app/runs.ts'
import type { JournalStep, ModelAnswerPart, ModelAnswerStep, NewJournalStep, ToolResultStep } from './journal.ts'
import { truncateText } from './schema/text.ts'
import { isJsonObject } from './schema/payload-shape.ts'

/** The tool that ends a run with a model. */
export const END_RUN = 'end_run'

/** What a model was asked with, beside the steps of the journal (contract README, "The prompt of a model"). */
export interface RunPrompt extends Readonly<Omit<RunPromptsOut['prompts'][number], 'omitted_bytes'>> {
  /** How many bytes of JSON were left out because the prompt is large; absent if none were. */
  readonly omitted_bytes?: number
}

/** Bytes of JSON that are kept of a prompt. */
export const RUN_PROMPT_MAX_BYTES = 128 * 1_024
/** Characters of each text, and tools, of a larger prompt. */
const MAX_TEXT_LENGTH = 8_000
const MAX_TOOLS = 20
const MAX_DESCRIPTION_LENGTH = 200

/** The prompt; without the schemas of its tools and with the beginning of its texts beyond RUN_PROMPT_MAX_BYTES. */
export function fitRunPrompt(prompt: RunPrompt): RunPrompt {
  const bytes = countBytes(prompt)
  if (bytes <= RUN_PROMPT_MAX_BYTES) return prompt
  const fitted = {
    instructions: truncateText(prompt.instructions, MAX_TEXT_LENGTH),
    message: truncateText(prompt.message, MAX_TEXT_LENGTH),
    tools: prompt.tools.slice(0, MAX_TOOLS).map((tool) => ({
      ...tool,
      description: truncateText(tool.description, MAX_DESCRIPTION_LENGTH),
      schema: null,
    })),
  }
  return { ...fitted, omitted_bytes: bytes - countBytes(fitted) }
}

function countBytes(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value)).length
}

/**
 * One message of the conversation with a model. `position`: the step that it is made of, or that it follows; null for
 * the first one.
 */
export type ConversationMessage =
  | { readonly role: 'user'; readonly position: number | null; readonly text: string }
  | { readonly role: 'assistant'; readonly position: number | null; readonly parts: readonly AssistantMessagePart[] }
  | { readonly role: 'tool'; readonly position: number | null; readonly results: readonly ToolMessageResult[] }

export type AssistantMessagePart =
  | Exclude<ModelAnswerPart, { type: 'tool_call' }>
  | (Readonly<Pick<ToolCallPart, 'type' | 'call_id' | 'tool' | 'provider_options'>> & {
      readonly arguments: Readonly<Record<string, unknown>>
    })

type ToolMessageResult = Readonly<Pick<ToolResultStep, 'call_id' | 'tool' | 'ok' | 'text'>>

/** The payloads that people changed when they approved them, by the call. */
export function listEditedPayloads(
  steps: readonly (JournalStep | NewJournalStep)[],
): ReadonlyMap<string, Record<string, unknown>> {
  return new Map(
    steps.flatMap(({ kind, data }) =>
      kind === 'approval_decision' && data.payload ? [[data.call_id, data.payload]] : [],
    ),
  )
}

const CALL_A_TOOL = `Your answer called no tool, so nothing was done and the run has not ended. Call a tool if something is left to do; otherwise call ${END_RUN}.`

/**
 * Builds the conversation with a model from its first message and the journal alone: a resumed run has the same
 * conversation, and people see what the model was sent.
 */
export function listConversation(
  first: string,
  steps: readonly (JournalStep | NewJournalStep)[],
): ConversationMessage[] {
  const messages: ConversationMessage[] = [{ role: 'user', position: null, text: first }]
  const results = new Map(
    steps.flatMap((step) => (step.kind === 'tool_result' ? [[step.data.call_id, step.data]] : [])),
  )
  const edited = listEditedPayloads(steps)
  for (const step of steps) {
    if (step.kind !== 'model_answer') continue
    const position = 'position' in step ? step.position : null
    // No API accepts an empty message.
    if (step.data.parts.length > 0) {
      messages.push({ role: 'assistant', position, parts: step.data.parts.map(toAssistantPart) })
    }
    const calls = listToolCalls(step.data)
    const content = calls.flatMap(({ call_id, tool }) => {
      const result = results.get(call_id)
      const payload = edited.get(call_id)
      const note = payload ? `\nA person had changed the payload to ${JSON.stringify(payload)}.` : ''
      return result ? [{ call_id, tool: toToolName(tool), ok: result.ok, text: `${result.text}${note}` }] : []
    })
    if (content.length > 0) messages.push({ role: 'tool', position, results: content })
    if (calls.length === 0) messages.push({ role: 'user', position, text: CALL_A_TOOL })
  }
  return messages
}

export type ToolCallPart = Extract<ModelAnswerPart, { type: 'tool_call' }>

export function listToolCalls(answer: ModelAnswerStep): ToolCallPart[] {
  return answer.parts.filter((part) => part.type === 'tool_call')
}

function toAssistantPart(part: ModelAnswerPart): AssistantMessagePart {
  if (part.type !== 'tool_call') return part
  const { type, call_id, tool, arguments: given, provider_options } = part
  // Model APIs require an object here, even if the model wrote something else.
  const args = isJsonObject(given) ? given : { unreadable: given }
  return {
    type,
    call_id,
    tool: toToolName(tool),
    arguments: args,
    ...(provider_options === undefined ? {} : { provider_options }),
  }
}

/** A tool name that the model invented may contain characters that its own API rejects. */
function toToolName(name: string): string {
  return name.replace(/[^a-zA-Z0-9_-]/gu, '_').slice(0, 64) || 'unnamed'
}
