import { type Static, Type } from 'typebox'
import { DELIVERY_OUTCOMES } from './internal-api.ts'
import { closed, Nullable, StringEnum, Uuid } from './schema.ts'

/**
 * The journal of a run (design 6.5): what `run_steps.data` holds for each kind of step. The runner's agent writes it and
 * continues from it after a crash, `wf runs show` tells it as a story.
 */
export const STEP_KINDS = ['message', 'model_answer', 'tool_call', 'tool_result', 'note'] as const
export type StepKind = (typeof STEP_KINDS)[number]

const CallId = Type.String({ description: 'Ties a tool call, its result and the answer that asked for it together.' })
const ToolName = Type.String({ description: 'The name of the tool, as the agent knows it.' })

/** What the agent was told at the beginning: the trigger's input message followed by the context. */
export const MessageStep = Type.Object(
  {
    agent: Type.String({ description: 'The agent that began the run, as set in AGENT_MODEL.', examples: ['builtin'] }),
    text: Type.String({ description: 'The text.' }),
  },
  { ...closed, title: 'MessageStep', description: 'What the agent was told.' },
)
export type MessageStep = Static<typeof MessageStep>

const ProviderOptions = Type.Optional(
  Type.Unsafe<Record<string, Record<string, unknown>>>({
    type: 'object',
    description: "What the model's provider wants back unchanged, such as the signature of a thought.",
  }),
)

/** One part of a model's answer, in the order in which the model gave them. */
export const ModelAnswerPart = Type.Union([
  Type.Object(
    {
      type: Type.Literal('text', { description: 'What kind of part it is.' }),
      text: Type.String({ description: 'The words.' }),
      provider_options: ProviderOptions,
    },
    { ...closed, title: 'TextPart', description: 'Something the model said.' },
  ),
  Type.Object(
    {
      type: Type.Literal('reasoning', { description: 'What kind of part it is.' }),
      text: Type.String({ description: 'The words.' }),
      provider_options: ProviderOptions,
    },
    { ...closed, title: 'ReasoningPart', description: 'What the model let see of its thoughts.' },
  ),
  Type.Object(
    {
      type: Type.Literal('tool_call', { description: 'What kind of part it is.' }),
      call_id: CallId,
      tool: ToolName,
      source_id: Nullable(Uuid({ description: 'The webhook source behind the tool; null for any other tool.' })),
      arguments: Type.Unknown({ description: 'The parsed arguments, or the text as it came when it was not JSON.' }),
      fault: Nullable(Type.String({ description: 'Why the call cannot be carried out, in words; null when it can.' })),
      provider_options: ProviderOptions,
    },
    { ...closed, title: 'ToolCallPart', description: 'A tool call that the model asks for.' },
  ),
])
export type ModelAnswerPart = Static<typeof ModelAnswerPart>

/** One answer of a model, recorded before any of its tool calls is carried out. */
export const ModelAnswerStep = Type.Object(
  {
    turn: Type.Integer({ minimum: 1, description: 'Which answer of the run it is.' }),
    model: Type.String({ description: 'The model, as set in AGENT_MODEL.' }),
    parts: Type.Array(ModelAnswerPart, { description: 'The answer.' }),
    finish_reason: Type.String({ description: 'Why the model stopped, in the words of the AI SDK.' }),
    input_tokens: Nullable(Type.Integer({ description: 'Tokens read; null when the model did not say.' })),
    output_tokens: Nullable(Type.Integer({ description: 'Tokens written; null when the model did not say.' })),
  },
  { ...closed, title: 'ModelAnswerStep', description: 'One answer of a model.' },
)
export type ModelAnswerStep = Static<typeof ModelAnswerStep>

/**
 * A tool call that is about to be carried out. A delivery's id is here before its payload can leave, so a call found
 * without a result after a crash is asked about by the same id and never sent a second time.
 */
export const ToolCallStep = Type.Object(
  {
    call_id: CallId,
    tool: ToolName,
    arguments: Type.Optional(Type.Unknown({ description: 'The arguments of any tool but a webhook source.' })),
    delivery: Type.Optional(
      Type.Object(
        {
          id: Uuid({ description: 'The delivery, minted for this step.' }),
          source_id: Uuid({ description: 'The webhook source.' }),
          source_name: Type.String({ description: 'Its name at that time.' }),
          payload: Type.Unsafe<Record<string, unknown>>({ type: 'object', description: 'What to send.' }),
        },
        { ...closed, title: 'PlannedDelivery', description: 'The payload to send and under which id.' },
      ),
    ),
  },
  { ...closed, title: 'ToolCallStep', description: 'A tool call about to be carried out.' },
)
export type ToolCallStep = Static<typeof ToolCallStep>

/** What came of a tool call, with the very words that the model is told. */
export const ToolResultStep = Type.Object(
  {
    call_id: CallId,
    tool: ToolName,
    ok: Type.Boolean({ description: 'Whether the tool did what it was asked to do.' }),
    text: Type.String({ description: 'What the agent is told.' }),
    delivery: Type.Optional(
      Type.Object(
        {
          id: Uuid({ description: 'The delivery.' }),
          source_id: Uuid({ description: 'The webhook source.' }),
          source_name: Type.String({ description: 'Its name at that time.' }),
          outcome: StringEnum(DELIVERY_OUTCOMES, { description: 'What came of it.' }),
          status: Nullable(Type.Integer({ description: "The answer's HTTP status; null when there was none." })),
          answer: Nullable(Type.String({ description: "The answer's text, else null." })),
          reason: Nullable(Type.String({ description: 'Why it was not accepted, in words; null when it was.' })),
        },
        { ...closed, title: 'DeliveryResult', description: 'What came of the delivery.' },
      ),
    ),
  },
  { ...closed, title: 'ToolResultStep', description: 'What came of a tool call.' },
)
export type ToolResultStep = Static<typeof ToolResultStep>

/** Something that whoever reads the journal should know, such as history that was left out. */
export const NoteStep = Type.Object(
  {
    code: Type.String({ description: 'Short code; match on it.', examples: ['no_source_named', 'history_shortened'] }),
    text: Type.String({ description: 'For people.' }),
  },
  { ...closed, title: 'NoteStep', description: 'A remark.' },
)
export type NoteStep = Static<typeof NoteStep>

/** The schema of `run_steps.data` by `run_steps.kind`. */
export const STEP_DATA = {
  message: MessageStep,
  model_answer: ModelAnswerStep,
  tool_call: ToolCallStep,
  tool_result: ToolResultStep,
  note: NoteStep,
} as const

/** A step that is not in the journal yet. */
export type NewJournalStep =
  | { readonly kind: 'message'; readonly data: MessageStep }
  | { readonly kind: 'model_answer'; readonly data: ModelAnswerStep }
  | { readonly kind: 'tool_call'; readonly data: ToolCallStep }
  | { readonly kind: 'tool_result'; readonly data: ToolResultStep }
  | { readonly kind: 'note'; readonly data: NoteStep }

/** A step of the journal, in the order of `position`. */
export type JournalStep = NewJournalStep & { readonly position: number; readonly createdAt: Date }
