import { SCOPES, RUN_STATUSES } from '../enumerations.ts'
import { PAGE_QUERY } from '../public/resources.ts'
import { Closed, JsonObject, List, Nullable, Optional, Parameters, type Static, Unknown } from '../schema/objects.ts'
import { Bool, DateTime, Int, Name, named, Str, StringEnum, Text, Uuid } from '../schema/values.ts'
import { APPROVAL_REASON_MAX_LENGTH, NAME_MAX_LENGTH, SEARCH_MAX_LENGTH } from '../limits.ts'
import { PersonOut, ListOf } from './common.ts'
import { APPROVAL_DECISIONS } from '../internal/resources.ts'
import { AppDeliveryOut, IDS_QUERY, PERIOD_QUERY, SEARCHED } from './webhook-sources.ts'

export const RunOut = Closed('RunOut', 'A run.', {
  id: Uuid('The run, and its start.'),
  workflow: Closed('RunWorkflowOut', 'The workflow.', named('The workflow.')),
  first_line: Str('The first line of its text, at most 200 characters; empty without a text.'),
  session_id: Uuid('The session.'),
  number: Int('Position in the session, from 1.'),
  status: StringEnum(RUN_STATUSES, 'Its status.'),
  error: Nullable(Str('Why it failed: a code, a colon and a sentence.')),
  cancelled_by: Nullable(Str('The name of the person who cancelled it; null if it was not cancelled.')),
  attempts: Int('How often a runner began it.'),
  origin: StringEnum(['api', 'auto_run', 'app'], 'What began it: an API key, the schedule, or a person.'),
  started_by: Nullable(
    Closed('StartedByOut', 'The API key or the person.', {
      kind: StringEnum(['api_key', 'person'], 'Which of the two.'),
      ...named('Its id.'),
    }),
  ),
  created_at: DateTime('When the start was accepted.'),
  started_at: Nullable(DateTime('When a runner first began it.')),
  finished_at: Nullable(DateTime('When it ended.')),
})
export type RunOut = Static<typeof RunOut>

/** A step of a run's journal; `data` is as contract README, "The journal" says for the kind. */
export const RunStepOut = Closed('RunStepOut', 'A step of the journal.', {
  position: Int('From 0.'),
  kind: Str('The kind: contract README, "The journal".'),
  data: Unknown('The step, by its kind; `{ omitted_bytes }` for large ones beyond 2 MiB in all.'),
  created_at: DateTime('When it was recorded.'),
})
/** What a model was asked in a run (contract README, "The prompt of a model"). */
export const RunPromptsOut = Closed('RunPromptsOut', 'The requests of a run to its model.', {
  prompts: List(
    Closed('RunPromptOut', 'What requests in turn have in common.', {
      instructions: Str('The system text.'),
      tools: List(
        Closed('PromptToolOut', 'A tool.', {
          name: Str('Its name.'),
          description: Str('Its description.'),
          schema: Unknown('The JSON Schema of its arguments; null if it was left out.'),
        }),
        'The tools.',
      ),
      message: Str('The first message.'),
      omitted_bytes: Nullable(Int('How much of a large prompt was not kept; null for none.')),
    }),
    'In order.',
  ),
  messages: List(
    Closed('PromptMessageOut', 'A message after the first one.', {
      role: StringEnum(['user', 'assistant', 'tool'], 'Whose it is.'),
      content: Unknown('A text, the parts of an answer, or the results of tools.'),
    }),
    'In order.',
  ),
  requests: List(
    Closed('PromptRequestOut', 'A request.', {
      turn: Int('The number of the answer, from 1.'),
      prompt: Int('Its prompt: an index of `prompts`.'),
      messages: Int('It had the first so many of `messages`.'),
      is_answered: Bool('Whether the model has answered it.'),
    }),
    'In order.',
  ),
})
export type RunPromptsOut = Static<typeof RunPromptsOut>

/** A payload that waits, or waited, until a person decides (contract README, "Approvals"). */
export const ApprovalOut = Closed('ApprovalOut', 'An approval of a payload.', {
  delivery_id: Uuid('The delivery that is sent after an approval.'),
  source_id: Uuid('The webhook source.'),
  source_name: Str('Its name when the approval was requested.'),
  endpoint_url: Nullable(Str('The URL that it is sent to after an approval; null if it was decided.')),
  payload: Nullable(JsonObject('The payload; null if it was decided.')),
  status: StringEnum(['waiting', ...APPROVAL_DECISIONS], 'Whether it waits, or the decision.'),
  reason: Nullable(Str('Why it was declined; null without a reason.')),
  requested_at: DateTime('Since when it waits.'),
  expires_at: DateTime('When it counts as declined.'),
  decided_at: Nullable(DateTime('When it was decided.')),
  decided_by: Nullable(Str('The name of the person; null while it waits, and if it expired.')),
})
export type ApprovalOut = Static<typeof ApprovalOut>
export const DeclineIn = Closed('DeclineIn', 'Declines a payload.', {
  reason: Nullable(Text(APPROVAL_REASON_MAX_LENGTH, 'Why; the agent reads it.', 0, { format: 'trimmed' })),
})
export const ApproveIn = Closed('ApproveIn', 'Approves a payload.', {
  payload: Optional(JsonObject('Sent in place of the shown payload; it must follow the example.')),
})
const { delivery_id, source_id, source_name, endpoint_url, payload, requested_at, expires_at } = ApprovalOut.properties
export const WaitingApprovalOut = Closed(
  'WaitingApprovalOut',
  'A payload that waits for an approval; null if it has more than 16 KiB.',
  {
    delivery_id,
    source_id,
    source_name,
    endpoint_url,
    payload,
    requested_at,
    expires_at,
    run_id: Uuid('Its run.'),
    workflow: AppDeliveryOut.properties.workflow,
  },
)
export type WaitingApprovalOut = Static<typeof WaitingApprovalOut>
export const WaitingApprovalList = ListOf('WaitingApprovalList', WaitingApprovalOut, 'The oldest 100.')
export const WaitingCountOut = Closed('WaitingCountOut', 'How many payloads wait.', {
  count: Int('At most 1,000 are counted.'),
})
export const DecideIn = Closed('DecideIn', 'One decision on several payloads.', {
  decision: StringEnum(['approved', 'declined'], 'The decision.'),
  delivery_ids: List(Uuid('A payload that waits.'), 'The payloads.', { minItems: 1, maxItems: 100 }),
  reason: DeclineIn.properties.reason,
})
export const DecideOut = Closed('DecideOut', 'What was decided.', {
  decided: Int('How many.'),
  not_waiting: Int('How many were decided before, have expired, or are of a run that has ended.'),
})
export const RunDetailOut = Closed('RunDetailOut', 'A run with its journal and deliveries.', {
  ...RunOut.properties,
  context: Str('The text that it was started with.'),
  input_message: Str("The trigger's message at that time."),
  request_id: Str('The request that started it.'),
  waits_for_source: Bool('Whether it waits until a webhook source is resumed.'),
  input_tokens: Int('Tokens that models read.'),
  output_tokens: Int('Tokens that models wrote.'),
  cost_micros: Nullable(Int('What models cost, in millionths of `currency`; null without prices.')),
  currency: Nullable(Str('An ISO 4217 code; null without prices.')),
  steps: List(RunStepOut, 'The journal, at most 500 steps.'),
  deliveries: List(AppDeliveryOut, 'Its deliveries, oldest first, at most 200.'),
  approvals: List(ApprovalOut, 'Its approvals, oldest first, at most 200.'),
})
export type RunDetailOut = Static<typeof RunDetailOut>
export const RulesDraftOut = Closed('RulesDraftOut', 'Rules that a run needs, to be completed by a person.', {
  content: Str('A `rules.yaml` with the sources, the names that may be meant, and `todo("…")` for what is open.'),
})
export const RunListQuery = Parameters({
  ...PAGE_QUERY,
  ...PERIOD_QUERY,
  ...IDS_QUERY,
  status: Optional(StringEnum(RUN_STATUSES, 'Only runs with this status.')),
  workflow_id: Optional(Uuid('Only runs of this workflow.')),
  session_id: Optional(Uuid('Only runs of this session.')),
  needs_attention: Optional(
    Text(100, 'Only runs that need attention (docs/application.md, "Attention") and failed with this error code.'),
  ),
  search: Optional(Text(SEARCH_MAX_LENGTH, `Only runs with ${SEARCHED} in the text of their start, or as an id.`)),
})

export const SessionOut = Closed('SessionOut', 'A session.', {
  id: Uuid('The session.'),
  is_open: Bool('Whether starts are accepted.'),
  first_line: Str('The first line of the text of its latest start, at most 200 characters; empty without one.'),
  start_count: Int('Starts so far.'),
  waiting_count: Int('Of them, those that have not ended.'),
  created_at: DateTime('When it was opened.'),
  closed_at: Nullable(DateTime('When it was closed.')),
})
export type SessionOut = Static<typeof SessionOut>
export const SessionDetailOut = Closed('SessionDetailOut', 'A session with its latest runs.', {
  ...SessionOut.properties,
  runs: List(RunOut, 'Its latest runs, in their order, at most 100.'),
})
export type SessionDetailOut = Static<typeof SessionDetailOut>
export const CreateSessionIn = Closed('CreateSessionIn', 'A new session.', {
  id: Uuid('The id of the new session, chosen by the caller.'),
})
export const SessionListQuery = Parameters({
  ...PAGE_QUERY,
  ...IDS_QUERY,
  state: Optional(StringEnum(['open', 'closed'], 'Only open or closed ones.')),
})

/** An API key without the key itself. */
export const ApiKeyOut = Closed('ApiKeyOut', 'An API key.', {
  ...named('The key.'),
  prefix: Str('The first 12 characters.'),
  scopes: List(StringEnum(SCOPES, 'A permission.'), 'What it may do.'),
  created_by: Nullable(PersonOut),
  created_at: DateTime('When it was made.'),
  expires_at: Nullable(DateTime('From when it is refused; null: never.')),
  revoked_at: Nullable(DateTime('When it was revoked.')),
  last_used_at: Nullable(DateTime('When it was last used, to the minute.')),
})
export type ApiKeyOut = Static<typeof ApiKeyOut>
export const CreateApiKeyIn = Closed('CreateApiKeyIn', 'A new API key.', {
  id: Uuid('The id of the new key, chosen by the caller.'),
  name: Name(NAME_MAX_LENGTH, 'Unique in the organization.'),
  scopes: List(StringEnum(SCOPES, 'A permission.'), 'What it may do.', { minItems: 1, maxItems: 2 }),
  expires_at: Nullable(DateTime('From when it is refused; null: never.')),
})
export const NewApiKeyOut = Closed('NewApiKeyOut', 'A new API key with the key itself, shown once.', {
  ...ApiKeyOut.properties,
  key: Nullable(Str('The key; null when the request was repeated: it is shown once.')),
})
