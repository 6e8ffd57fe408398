import { type Static, Type } from 'typebox'
import { SCOPES } from '../public/operations.ts'
import { DateTime, JsonObject, Nullable, StringEnum, Uuid } from '../schema/types.ts'
import { APPROVAL_REASON_MAX_LENGTH, NAME_MAX_LENGTH } from '../limits.ts'
import { Closed, Name, PageOf, PersonOut, RUN_ORIGINS, RUN_STATUSES, Text } from './common.ts'
import { APPROVAL_DECISIONS } from '../internal/resources.ts'
import { AppDeliveryOut, IDS_QUERY, PAGE_QUERY, PERIOD_QUERY } from './webhook-sources.ts'

/** A run in a list. */
export const RunOut = Closed('RunOut', 'A run.', {
  id: Uuid({ description: 'The run, and its start.' }),
  workflow: Closed('RunWorkflowOut', 'The workflow.', {
    id: Uuid({ description: 'The workflow.' }),
    name: Type.String({ description: 'Its name.' }),
  }),
  session_id: Uuid({ description: 'The session.' }),
  number: Type.Integer({ description: 'Position in the session, from 1.' }),
  status: StringEnum(RUN_STATUSES, { description: 'Its status.' }),
  error: Nullable(Type.String({ description: 'Why it failed: a code, a colon and a sentence.' })),
  attempts: Type.Integer({ description: 'How often a runner began it.' }),
  origin: StringEnum(RUN_ORIGINS, { description: 'What began it.' }),
  started_by: Nullable(
    Closed('StartedByOut', 'The API key or the person.', {
      kind: StringEnum(['api_key', 'person'], { description: 'Which of the two.' }),
      id: Uuid({ description: 'Its id.' }),
      name: Type.String({ description: 'Its name.' }),
    }),
  ),
  created_at: DateTime({ description: 'When the start was accepted.' }),
  started_at: Nullable(DateTime({ description: 'When a runner first began it.' })),
  finished_at: Nullable(DateTime({ description: 'When it ended.' })),
})
export type RunOut = Static<typeof RunOut>
export const RunPage = PageOf('RunPage', RunOut)

/** A step of a run's journal; `data` is as contract README, "The journal" says for the kind. */
export const RunStepOut = Closed('RunStepOut', 'A step of the journal.', {
  position: Type.Integer({ description: 'From 0.' }),
  kind: Type.String({ description: 'The kind: contract README, "The journal".' }),
  data: Type.Unknown({ description: 'The step, by its kind; `{ omitted_bytes }` for large ones beyond 2 MiB in all.' }),
  created_at: DateTime({ description: 'When it was recorded.' }),
})
/** What a model was asked in a run (contract README, "The prompt of a model"). */
export const RunPromptsOut = Closed('RunPromptsOut', 'The requests of a run to its model.', {
  prompts: Type.Array(
    Closed('RunPromptOut', 'What requests in turn have in common.', {
      instructions: Type.String({ description: 'The system text.' }),
      tools: Type.Array(
        Closed('PromptToolOut', 'A tool.', {
          name: Type.String({ description: 'Its name.' }),
          description: Type.String({ description: 'Its description.' }),
          schema: Type.Unknown({ description: 'The JSON Schema of its arguments; null if it was left out.' }),
        }),
        { description: 'The tools.' },
      ),
      message: Type.String({ description: 'The first message.' }),
      omitted_bytes: Nullable(Type.Integer({ description: 'How much of a large prompt was not kept; null for none.' })),
    }),
    { description: 'In order.' },
  ),
  messages: Type.Array(
    Closed('PromptMessageOut', 'A message after the first one.', {
      role: StringEnum(['user', 'assistant', 'tool'], { description: 'Whose it is.' }),
      content: Type.Unknown({ description: 'A text, the parts of an answer, or the results of tools.' }),
    }),
    { description: 'In order.' },
  ),
  requests: Type.Array(
    Closed('PromptRequestOut', 'A request.', {
      turn: Type.Integer({ description: 'The number of the answer, from 1.' }),
      prompt: Type.Integer({ description: 'Its prompt: an index of `prompts`.' }),
      messages: Type.Integer({ description: 'It had the first so many of `messages`.' }),
      is_answered: Type.Boolean({ description: 'Whether the model has answered it.' }),
    }),
    { description: 'In order.' },
  ),
})
/** A payload that waits, or waited, until a person decides (contract README, "Approvals"). */
export const ApprovalOut = Closed('ApprovalOut', 'An approval of a payload.', {
  delivery_id: Uuid({ description: 'The delivery that is sent after an approval.' }),
  source_id: Uuid({ description: 'The webhook source.' }),
  source_name: Type.String({ description: 'Its name when the approval was requested.' }),
  endpoint_url: Nullable(
    Type.String({ description: 'The URL that it is sent to after an approval; null if it was decided.' }),
  ),
  payload: Nullable(JsonObject('The payload; null if it was decided.')),
  status: StringEnum(['waiting', ...APPROVAL_DECISIONS], { description: 'Whether it waits, or the decision.' }),
  reason: Nullable(Type.String({ description: 'Why it was declined; null without a reason.' })),
  requested_at: DateTime({ description: 'Since when it waits.' }),
  expires_at: DateTime({ description: 'When it counts as declined.' }),
  decided_at: Nullable(DateTime({ description: 'When it was decided.' })),
  decided_by: Nullable(Type.String({ description: 'The name of the person; null while it waits, and if it expired.' })),
})
export type ApprovalOut = Static<typeof ApprovalOut>
export const DeclineIn = Closed('DeclineIn', 'Declines a payload.', {
  reason: Nullable(Text(APPROVAL_REASON_MAX_LENGTH, 'Why; the agent reads it.')),
})
export const RunDetailOut = Closed('RunDetailOut', 'A run with its journal and deliveries.', {
  ...RunOut.properties,
  context: Type.String({ description: 'The text that it was started with.' }),
  input_message: Type.String({ description: "The trigger's message at that time." }),
  request_id: Type.String({ description: 'The request that started it.' }),
  input_tokens: Type.Integer({ description: 'Tokens that models read.' }),
  output_tokens: Type.Integer({ description: 'Tokens that models wrote.' }),
  steps: Type.Array(RunStepOut, { description: 'The journal, at most 500 steps.' }),
  deliveries: Type.Array(AppDeliveryOut, { description: 'Its deliveries, oldest first, at most 200.' }),
  approvals: Type.Array(ApprovalOut, { description: 'Its approvals, oldest first, at most 200.' }),
})
export type RunDetailOut = Static<typeof RunDetailOut>
export const RulesDraftOut = Closed('RulesDraftOut', 'Rules that a run needs, to be completed by a person.', {
  content: Type.String({
    description: 'A `rules.yaml` with the sources, the names that may be meant, and `todo("…")` for what is open.',
  }),
})
export const RunListQuery = Type.Object(
  {
    ...PAGE_QUERY,
    ...PERIOD_QUERY,
    ...IDS_QUERY,
    status: Type.Optional(StringEnum(RUN_STATUSES, { description: 'Only runs with this status.' })),
    workflow_id: Type.Optional(Uuid({ description: 'Only runs of this workflow.' })),
    session_id: Type.Optional(Uuid({ description: 'Only runs of this session.' })),
  },
  { title: 'RunListQuery', description: 'Query parameters of the runs.' },
)

/** A session in a list. */
export const SessionOut = Closed('SessionOut', 'A session.', {
  id: Uuid({ description: 'The session.' }),
  is_open: Type.Boolean({ description: 'Whether starts are accepted.' }),
  start_count: Type.Integer({ description: 'Starts so far.' }),
  waiting_count: Type.Integer({ description: 'Of them, those that have not ended.' }),
  created_at: DateTime({ description: 'When it was opened.' }),
  closed_at: Nullable(DateTime({ description: 'When it was closed.' })),
})
export type SessionOut = Static<typeof SessionOut>
export const SessionPage = PageOf('SessionPage', SessionOut)
export const SessionDetailOut = Closed('SessionDetailOut', 'A session with its latest runs.', {
  ...SessionOut.properties,
  runs: Type.Array(RunOut, { description: 'Its latest runs, in their order, at most 100.' }),
})
export type SessionDetailOut = Static<typeof SessionDetailOut>
export const CreateSessionIn = Closed('CreateSessionIn', 'A new session.', {
  id: Uuid({ description: 'The id of the new session, chosen by the caller.' }),
})
export const SessionListQuery = Type.Object(
  {
    ...PAGE_QUERY,
    ...IDS_QUERY,
    state: Type.Optional(StringEnum(['open', 'closed'], { description: 'Only open or closed ones.' })),
  },
  { title: 'SessionListQuery', description: 'Query parameters of the sessions.' },
)

/** An API key without the key itself. */
export const ApiKeyOut = Closed('ApiKeyOut', 'An API key.', {
  id: Uuid({ description: 'The key.' }),
  name: Type.String({ description: 'Its name.' }),
  prefix: Type.String({ description: 'The first 12 characters.' }),
  scopes: Type.Array(StringEnum(SCOPES, { description: 'A permission.' }), { description: 'What it may do.' }),
  created_by: Nullable(PersonOut),
  created_at: DateTime({ description: 'When it was made.' }),
  expires_at: Nullable(DateTime({ description: 'From when it is refused; null: never.' })),
  revoked_at: Nullable(DateTime({ description: 'When it was revoked.' })),
  last_used_at: Nullable(DateTime({ description: 'When it was last used, to the minute.' })),
})
export type ApiKeyOut = Static<typeof ApiKeyOut>
export const ApiKeyPage = PageOf('ApiKeyPage', ApiKeyOut)
export const CreateApiKeyIn = Closed('CreateApiKeyIn', 'A new API key.', {
  id: Uuid({ description: 'The id of the new key, chosen by the caller.' }),
  name: Name(NAME_MAX_LENGTH, 'Unique in the organization.'),
  scopes: Type.Array(StringEnum(SCOPES, { description: 'A permission.' }), {
    minItems: 1,
    maxItems: 2,
    description: 'What it may do.',
  }),
  expires_at: Nullable(DateTime({ description: 'From when it is refused; null: never.' })),
})
export const NewApiKeyOut = Closed('NewApiKeyOut', 'A new API key with the key itself, shown once.', {
  ...ApiKeyOut.properties,
  key: Nullable(Type.String({ description: 'The key; null when the request was repeated: it is shown once.' })),
})
