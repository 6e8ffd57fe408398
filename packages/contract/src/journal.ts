import { DELIVERY_OUTCOMES } from './enumerations.ts'
import { APPROVAL_DECISIONS } from './internal/resources.ts'
import { Closed, JsonObject, List, Nullable, Optional, type Static, Unknown } from './schema/objects.ts'
import { Bool, DateTime, Int, Str, StringEnum, Uuid } from './schema/values.ts'
import { Type } from './schema/type.ts'

const CallId = Str('Identifies a tool call in the answer that asked for it, in its own step and in its result.')
const ToolName = Str('The name of the tool, as the agent knows it.')

/** A tool of a look-up that a call names. */
export const LookupCallStep = Closed('LookupCallStep', 'The tool of a look-up.', {
  id: Uuid('The look-up.'),
  name: Str('Its name at that time.'),
  tool: Str('The name of its tool.'),
})
export type LookupCallStep = Static<typeof LookupCallStep>

/** The text that the agent received at the beginning: the trigger's input message followed by the context. */
export const MessageStep = Closed('MessageStep', 'The text that the agent received.', {
  agent: Str('The agent that began the run: `builtin`, or the model as AGENT_MODELS or AGENT_MODEL names it.', {
    examples: ['builtin'],
  }),
  text: Str('The text.'),
  instructions_version: Optional(
    Int("The version of the organization's instructions that the agent follows; absent without any."),
  ),
})
export type MessageStep = Static<typeof MessageStep>

const ProviderOptions = Optional(
  Type.Unsafe<Record<string, Record<string, unknown>>>({
    type: 'object',
    description: "Data that the model's provider expects back unchanged, such as the signature of a reasoning part.",
  }),
)

/** One part of a model's answer, in the order in which the model gave them. */
export const ModelAnswerPart = Type.Union([
  Closed('TextPart', 'A text of the model.', {
    type: Type.Literal('text', { description: 'The kind of part.' }),
    text: Str('The text.'),
    provider_options: ProviderOptions,
  }),
  Closed('ReasoningPart', 'The reasoning that the model disclosed.', {
    type: Type.Literal('reasoning', { description: 'The kind of part.' }),
    text: Str('The text.'),
    provider_options: ProviderOptions,
  }),
  Closed('ToolCallPart', 'A tool call requested by the model.', {
    type: Type.Literal('tool_call', { description: 'The kind of part.' }),
    call_id: CallId,
    tool: ToolName,
    source_id: Nullable(Uuid('The webhook source behind the tool; null for any other tool.')),
    source_name: Optional(Str("The webhook source's name at that time; absent if `source_id` is null.")),
    lookup: Optional(LookupCallStep),
    arguments: Unknown('The parsed arguments, or the received text if it is not JSON.'),
    payload: Optional(JsonObject('The payload that the arguments give; absent if it equals the arguments.')),
    fault: Nullable(Str('Why the call cannot be executed; null if it can.')),
    provider_options: ProviderOptions,
  }),
])
export type ModelAnswerPart = Static<typeof ModelAnswerPart>

/** Which model answered, and what that took. */
const ANSWER_FIELDS = {
  model: Str('The model, as PROVIDER:NAME.'),
  model_name: Optional(Str('Its name in AGENT_MODELS; absent for that of AGENT_MODEL.')),
  key_of: Optional(
    Type.Literal('organization', { description: "Present if it was asked with the organization's own key." }),
  ),
  input_tokens: Nullable(Int('Input tokens; null if the model did not report them.')),
  cache_read_tokens: Optional(Nullable(Int("Those of them that were read from the provider's cache."))),
  cache_write_tokens: Optional(Nullable(Int("Those of them that were written to the provider's cache."))),
  output_tokens: Nullable(Int('Output tokens; null if the model did not report them.')),
  reasoning_tokens: Optional(Nullable(Int('Those of them that are reasoning.'))),
  cost_micros: Optional(
    Int(
      'What it cost, in millionths of `currency`; absent for a model without prices. Without tokens, what was reserved.',
    ),
  ),
  currency: Optional(Str('The currency of the prices, as an ISO 4217 code.')),
  latency_ms: Optional(Int('From sending the request to the end of the answer.')),
  response_id: Optional(Nullable(Str("The provider's id of the answer; null if it gave none."))),
}

/** One answer of a model, recorded before any of its tool calls is executed. */
export const ModelAnswerStep = Closed('ModelAnswerStep', 'One answer of a model.', {
  turn: Int('Number of the answer within the run, from 1.', { minimum: 1 }),
  parts: List(ModelAnswerPart, 'The answer.'),
  finish_reason: Str('Why the model stopped, as the AI SDK names it.'),
  raw_finish_reason: Optional(Nullable(Str('The same as the provider names it; null if it gave none.'))),
  ends_by_call: Optional(
    Type.Literal(true, {
      description:
        'Present since a run ends by the tool `end_run`. Without it, an answer without tool calls ended the run.',
    }),
  ),
  ...ANSWER_FIELDS,
})
export type ModelAnswerStep = Static<typeof ModelAnswerStep>

/** What a model made of earlier runs of the session, recorded before it is used: once, for the runs that follow too. */
export const SessionSummaryStep = Closed('SessionSummaryStep', 'A summary of earlier runs of the session.', {
  turn: Type.Literal(0, { description: 'It is asked for before the first answer.' }),
  from: Optional(Int('The number in the session of the first run that it contains; absent: 1.', { minimum: 1 })),
  through: Int('The number in the session of the last run that it contains.', { minimum: 1 }),
  text: Str('The summary.'),
  ...ANSWER_FIELDS,
})
export type SessionSummaryStep = Static<typeof SessionSummaryStep>

/**
 * A tool call that is about to be executed. The delivery's id is recorded before its payload is sent. After a crash, a
 * call without a result is repeated with that id, and the dispatcher does not send it a second time.
 */
export const ToolCallStep = Closed('ToolCallStep', 'A tool call about to be executed.', {
  call_id: CallId,
  tool: ToolName,
  arguments: Optional(Unknown('The arguments; of a webhook source see `delivery`.')),
  lookup: Optional(LookupCallStep),
  delivery: Optional(
    Closed('PlannedDelivery', 'The payload to send, and its delivery id.', {
      id: Uuid('The delivery id, created for this step.'),
      source_id: Uuid('The webhook source.'),
      source_name: Str('Its name at that time.'),
      payload: JsonObject('The payload.'),
      send_again: Optional(
        Closed('SendAgain', 'Present if the model knowingly sends a payload again.', {
          delivery_id: Uuid('The earlier delivery of the same payload, which may have arrived.'),
          reason: Str('Why the model sends it again, in its own words.'),
        }),
      ),
    }),
  ),
})
export type ToolCallStep = Static<typeof ToolCallStep>
/** Why a payload that may have arrived is sent again, and which delivery had it. */
export type SendAgain = NonNullable<NonNullable<ToolCallStep['delivery']>['send_again']>

/**
 * Why a tool call was not executed: it is invalid (unknown tool, unreadable arguments, or the answer did not end
 * properly), the source accepted the same payload before in this run, the same payload may have arrived before, the run
 * reached its limit of payloads or look-ups, the run cannot end yet, or no person approved the payload.
 */
const TOOL_CALL_ERRORS = [
  'invalid_call',
  'duplicate_payload',
  'may_have_arrived',
  'too_many_deliveries',
  'cannot_end',
  'delivery_declined',
  'approval_expired',
  'too_many_lookups',
] as const
export type ToolCallError = (typeof TOOL_CALL_ERRORS)[number]

/** The result of a tool call, with the exact text that the model receives. */
export const ToolResultStep = Closed('ToolResultStep', 'The result of a tool call.', {
  call_id: CallId,
  tool: ToolName,
  ok: Bool('Whether the call succeeded.'),
  text: Str('The text that the agent receives.'),
  error: Optional(
    StringEnum(
      TOOL_CALL_ERRORS,
      'Why the call was not executed; absent if it was, and of steps before this field existed.',
    ),
  ),
  found_source_ids: Optional(
    List(
      Uuid('A webhook source.'),
      'The webhook sources that a search found; they have tools in the answers after it.',
    ),
  ),
  lookup: Optional(
    Closed('LookupResult', 'What a look-up answered; the text of the answer is in `text`.', {
      status: Nullable(Int("The answer's HTTP status; null when there was none.")),
      bytes: Int('The size of the answer, as far as it was read.'),
      is_cut_off: Bool('Whether more followed that was not read.'),
      duration_ms: Int('The time of the requests.'),
    }),
  ),
  delivery: Optional(
    Closed('DeliveryResult', 'The outcome of the delivery.', {
      id: Uuid('The delivery id.'),
      source_id: Uuid('The webhook source.'),
      source_name: Str('Its name at that time.'),
      outcome: StringEnum(DELIVERY_OUTCOMES, 'The outcome.'),
      status: Nullable(Int("The answer's HTTP status; null when there was none.")),
      answer: Nullable(Str("The answer's text, otherwise null.")),
      reason: Nullable(Str('Why it was not accepted; null if it was.')),
    }),
  ),
})
export type ToolResultStep = Static<typeof ToolResultStep>
/** A delivery with its outcome, as the journal has it. */
export type JournaledDelivery = NonNullable<ToolResultStep['delivery']>

/** The run waits until a person approves or declines the payload of a tool call (contract README, "Approvals"). */
const ApprovalRequestStep = Closed('ApprovalRequestStep', 'A payload that waits for an approval.', {
  call_id: CallId,
  delivery_id: Uuid('The delivery that waits; its payload is in the step of the tool call.'),
  source_name: Str("The webhook source's name at that time."),
  expires_at: DateTime('When the payload counts as declined.'),
})

/** The decision on a payload; recorded when the run continues. */
const ApprovalDecisionStep = Closed('ApprovalDecisionStep', 'The decision on a payload that waited.', {
  call_id: CallId,
  delivery_id: Uuid('The delivery.'),
  decision: StringEnum(APPROVAL_DECISIONS, 'The decision.'),
  decided_by: Nullable(Str('The name of the person; null if it expired.')),
  reason: Nullable(Str('Why it was declined; null without a reason.')),
  payload: Optional(JsonObject('The payload that was approved, if the person has edited it.')),
})

/**
 * Why the built-in agent sends nothing, with what a person needs to write rules (`draftRules`). Each list has at most
 * 100 entries.
 */
export const RefusalDetails = Closed('RefusalDetails', 'Why nothing was sent, for those who write rules.', {
  sources: List(Type.String(), 'Names of the webhook sources that were to get a payload.'),
  missing: List(
    Closed('MissingField', 'A field without a value.', {
      source: Str('The name of the webhook source.'),
      field: Str('Path of the field, such as `customer.name` or `lines.0.price`.'),
      closest: Nullable(Str('The most similar name that no field took; null if none is similar.')),
    }),
    'Fields for which the context has no value.',
  ),
  unusable: List(
    Closed('UnusableField', 'A field whose value cannot be used.', {
      source: Str('The name of the webhook source.'),
      field: Str('Path of the field.'),
      reason: Str('Why its value cannot be used.'),
    }),
    'Fields whose value in the context cannot be used.',
  ),
  unused: List(
    Type.String(),
    'Names in the context that no field took; those in JSON with their path, such as `amount.value` and `lines[].sku`.',
  ),
  in_lines: Optional(
    Type.Literal(true, {
      description: 'Present if the context is lines: a point is part of a name there, not of a path.',
    }),
  ),
})
export type RefusalDetails = Static<typeof RefusalDetails>

/** A remark for readers of the journal, such as omitted history. */
export const NoteStep = Closed('NoteStep', 'A remark.', {
  code: Str('Short code; match on it.', { examples: ['payload_filled', 'history_shortened'] }),
  text: Str('Human-readable.'),
  model: Optional(Str('Of `model_fallback`: the name of the model that gives the next answers.')),
  details: Optional(RefusalDetails),
})
export type NoteStep = Static<typeof NoteStep>

/**
 * The kinds of steps in the journal of a run, with the schema of `run_steps.data` of each (contract README, "The
 * journal"). The runner's agent writes the steps and resumes from them after a crash; `wf runs show` formats them.
 */
export const STEP_DATA = {
  message: MessageStep,
  model_answer: ModelAnswerStep,
  tool_call: ToolCallStep,
  tool_result: ToolResultStep,
  approval_request: ApprovalRequestStep,
  approval_decision: ApprovalDecisionStep,
  session_summary: SessionSummaryStep,
  note: NoteStep,
} as const
type StepData = typeof STEP_DATA

/** A step that is not yet recorded. */
export type NewJournalStep = {
  [Kind in keyof StepData]: { readonly kind: Kind; readonly data: Static<StepData[Kind]> }
}[keyof StepData]

/** A recorded step; the journal is ordered by `position`. */
export type JournalStep = NewJournalStep & { readonly position: number; readonly createdAt: Date }
