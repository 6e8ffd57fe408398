import { DELIVERY_KINDS, DELIVERY_OUTCOMES } from '../enumerations.ts'
import { ErrorBody, ErrorCodeOf, FieldError, INTERNAL_ERROR_CODES } from '../errors.ts'
import {
  ENDPOINT_URL_MAX_LENGTH,
  SIGNING_SECRET_MAX_LENGTH,
  WEBHOOK_SOURCE_DESCRIPTION_MAX_LENGTH,
  WEBHOOK_SOURCE_NAME_MAX_LENGTH,
  WORKFLOW_TEXT_MAX_LENGTH,
} from '../limits.ts'
import { PageInfo } from '../public/resources.ts'
import { Closed, JsonObject, List, Nullable, Optional, type Static } from '../schema/objects.ts'
import { Bool, DateTime, Int, Name, Str, StringEnum, Text, Uuid } from '../schema/values.ts'

/** When a payload of a run waits for an approval (contract README, "Approvals"). */
export const APPROVAL_MODES = ['none', 'first', 'always'] as const
export type ApprovalMode = (typeof APPROVAL_MODES)[number]

/** What becomes of a payload that waits (contract README, "Approvals"). */
export const APPROVAL_DECISIONS = ['approved', 'declined', 'expired'] as const
export type ApprovalDecision = (typeof APPROVAL_DECISIONS)[number]

/** A webhook source to save (contract README, "Webhook sources"). */
export const WebhookSourceIn = Closed('WebhookSourceIn', 'A webhook source to save.', {
  name: Name(WEBHOOK_SOURCE_NAME_MAX_LENGTH, 'Unique in the organization, ignoring case; the agent reads it.'),
  description: Text(WEBHOOK_SOURCE_DESCRIPTION_MAX_LENGTH, 'When to use the source; the agent reads it.'),
  endpoint_url: Text(
    ENDPOINT_URL_MAX_LENGTH,
    'The URL that receives the requests: https:// or http://, publicly reachable.',
    1,
  ),
  signing_secret: Optional(
    Nullable(
      Text(
        SIGNING_SECRET_MAX_LENGTH,
        'Signs every request; at least 32 random bytes are recommended. Absent keeps the stored secret; null removes it.',
        1,
      ),
    ),
  ),
  example_request_body: JsonObject('Shows field names, nesting and value types; every payload is modelled on it.'),
  approval: Optional(
    StringEnum(
      APPROVAL_MODES,
      'Which payloads of runs wait until a person approves them: `none`, the `first` until one was accepted, or `always`. Absent keeps the stored value; `none` for a new source.',
    ),
  ),
})
export type WebhookSourceIn = Static<typeof WebhookSourceIn>

/** A saved webhook source, without its secret (contract README, "Internal API"). */
export const WebhookSourceOut = Closed('WebhookSourceOut', 'A webhook source.', {
  id: Uuid('Constant for the life of the source.'),
  organization_id: Uuid('The organization that owns it.'),
  name: Str('Its name.'),
  description: Str('When to use it.'),
  endpoint_url: Str('The URL exactly as entered.'),
  has_signing_secret: Bool('Whether requests carry X-Service-Token.'),
  example_request_body: JsonObject('The example as entered.'),
  approval: StringEnum(APPROVAL_MODES, 'Which payloads of runs wait for an approval.'),
  paused_at: Nullable(DateTime('Since when payloads wait until a person resumes it; null while it is not paused.')),
  created_at: DateTime('When it was first saved.'),
  updated_at: DateTime('When it was last changed.'),
  verified_at: Nullable(DateTime('When its endpoint last confirmed; null if it was saved without verification.')),
  version: Int('Incremented by every save; a save may name the version that it edited.'),
})
export type WebhookSourceOut = Static<typeof WebhookSourceOut>

export const ModelKeyIn = Closed('ModelKeyIn', "A key of an organization's own.", {
  model: Text(200, 'The name of the model, as the runners offer it.', 1),
  key: Str('The key of its API; never shown again.', {
    format: 'trimmed',
    minLength: 12,
    maxLength: 500,
    pattern: '^[\\x21-\\x7e]+$',
    writeOnly: true,
  }),
})

/** A payload, or that of an earlier delivery, to send at most once (contract README, "Internal API"). */
export const DeliveryIn = Closed('DeliveryIn', 'A payload to send at most once.', {
  organization_id: Uuid('The organization.'),
  source_id: Optional(Uuid('The webhook source to send to. Required unless `resend_of` is given.')),
  payload: Optional(JsonObject('The payload; it follows the example. Required unless `resend_of` is given.')),
  run_id: Optional(Nullable(Uuid('The run that sends it.'))),
  lease: Optional(
    Nullable(
      Closed('LeaseIn', "The runner's lease of the session.", {
        session_id: Uuid('The session that the runner has leased.'),
        epoch: Int('The epoch of its lease. The payload is sent only if it is the current one.', {
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
        }),
      }),
    ),
  ),
  journal: Optional(
    Nullable(
      Closed(
        'DeliveryJournalIn',
        'What the dispatcher writes into the journal of the run. Needs `run_id` and `lease`.',
        {
          position: Int('Where the first of the steps is written, and the result after the last.', { minimum: 0 }),
          steps: List(
            Closed('StepIn', 'A step.', {
              kind: Str('Its kind.', { maxLength: 100 }),
              data: Str('Its data as JSON text.', { maxLength: 200_000 }),
            }),
            'Steps that are written when the payload is claimed, such as the tool call that sends it.',
          ),
          call_id: Str('The tool call that sends the payload; its result is written with the outcome.', {
            maxLength: WORKFLOW_TEXT_MAX_LENGTH,
          }),
          tool: Str('Its tool.', { maxLength: WORKFLOW_TEXT_MAX_LENGTH }),
          source_name: Str("The webhook source's name in the result.", { maxLength: WORKFLOW_TEXT_MAX_LENGTH }),
          last_of_run: Nullable(
            Int(
              'The number of the run in its session, if an accepted payload is all that was left to do: it succeeds.',
              {
                minimum: 1,
                maximum: Number.MAX_SAFE_INTEGER,
              },
            ),
          ),
        },
      ),
    ),
  ),
  resend_of: Optional(
    Uuid('The delivery whose payload is sent again to its source. Excludes the fields of a new payload.'),
  ),
  sent_by: Optional(Nullable(Uuid('The user who sends it again.'))),
})
export type DeliveryIn = Static<typeof DeliveryIn>

/**
 * The header of the response to a payload with `journal`: what of it is in the database. `written`: the steps and the
 * result; `succeeded`: also the end of the run, and the session is released. Absent: nothing may be.
 */
export const RUN_JOURNAL_HEADER = 'x-run-journal'
export const RUN_JOURNAL_STATES = ['written', 'succeeded'] as const
export type RunJournalState = (typeof RUN_JOURNAL_STATES)[number]

/** Most payloads in one request of `sendPayloads`. */
export const DELIVERIES_MAX = 64

/** Payloads of one request, each with what a request of its own would have (contract README, "Internal API"). */
export const DeliveriesIn = Closed('DeliveriesIn', 'Payloads to send, each at most once.', {
  deliveries: List(
    Closed('DeliveriesEntryIn', 'One payload.', {
      delivery_id: Uuid('The id of the delivery.'),
      request_id: Str('As `X-Request-Id`.', { maxLength: 128 }),
      trace: JsonObject('As `traceparent` and `tracestate`, if the payload belongs to a trace.'),
      body: JsonObject('A `DeliveryIn`. It is checked by itself: a defect is an answer to this payload alone.'),
    }),
    'The payloads, of any organizations and runs.',
    { minItems: 1, maxItems: DELIVERIES_MAX },
  ),
})
export type DeliveriesIn = Static<typeof DeliveriesIn>

/** A line of the response of `sendPayloads`. */
export const DeliveriesLine = Closed('DeliveriesLine', 'The answer to one payload.', {
  index: Int('Which payload of the request; the first is 0.', { minimum: 0 }),
  status: Int('What `sendPayload` would answer.'),
  journal: Nullable(StringEnum(RUN_JOURNAL_STATES, 'What is in the database of `journal`; null: nothing may be.')),
  body: JsonObject(
    'The same. Of a delivery only `outcome`, `status`, `reason`, `answer` and `duration_ms`: not what was sent.',
  ),
})
export type DeliveriesLine = Static<typeof DeliveriesLine>

/** Whose queued runs are cancelled. */
export const CancelQueuedIn = Closed('CancelQueuedIn', 'A queue of runs.', {
  kind: StringEnum(['workflow', 'session'], 'Whose runs.'),
  id: Uuid('The workflow or session.'),
})
export const CancelQueuedOut = Closed('CancelQueuedOut', 'What was cancelled.', {
  cancelled: Int('How many runs.'),
  is_more: Bool('Whether more are queued: at most 10,000 are cancelled at once. Repeat the call.'),
})

/** One entry of the delivery log (contract README, "Deliveries"). */
export const DeliveryOut = Closed('DeliveryOut', 'One outbound request and its outcome.', {
  id: Uuid('The id that the caller chose.'),
  organization_id: Uuid('The organization.'),
  source_id: Uuid('The webhook source.'),
  kind: StringEnum(DELIVERY_KINDS, 'Which kind of request it was.'),
  outcome: StringEnum(DELIVERY_OUTCOMES, 'The outcome.'),
  status: Nullable(Int("The answer's HTTP status; null when there was none.")),
  reason: Nullable(Str('Why it was not accepted; null when it was.')),
  mismatches: Nullable(
    List(FieldError, 'Of an `invalid` payload: each field that does not follow the example; otherwise null.'),
  ),
  duration_ms: Nullable(Int('Time from the first step to the outcome, in milliseconds.')),
  answer: Nullable(Str("The answer's text if it is one line of at most 300 characters; otherwise null.")),
  request_body: JsonObject('What was sent, without the signing secret.'),
  session_id: Nullable(Uuid('The session of the run.')),
  run_id: Nullable(Uuid('The run that sent it, or whose payload was sent again.')),
  request_id: Nullable(Str('The request that caused it.')),
  created_at: DateTime('When it was recorded.'),
  finished_at: Nullable(DateTime('When its outcome was known; null while in flight.')),
  resend_of: Nullable(Uuid('The delivery that this one repeats.')),
  sent_by: Nullable(Uuid('The user who sent it again.')),
})
export type DeliveryOut = Static<typeof DeliveryOut>

/** One page of the delivery log, newest first (contract README, "Deliveries"). */
export const DeliveryPage = Closed('DeliveryPage', 'One page of the delivery log.', {
  data: List(DeliveryOut, 'Entries, newest first.'),
  pagination: PageInfo,
})
export type DeliveryPage = Static<typeof DeliveryPage>

/** Every webhook source of an organization, sorted by name. */
export const WebhookSourceList = Closed('WebhookSourceList', 'The webhook sources of an organization.', {
  data: List(WebhookSourceOut, 'Every webhook source of the organization, sorted by name.'),
})
export type WebhookSourceList = Static<typeof WebhookSourceList>

/** Why an endpoint did not confirm a webhook source (contract README, "Webhook sources"). */
export const VERIFICATION_REASONS = ['status', 'timed_out', 'unreachable', 'redirect', 'url_not_public'] as const
export type VerificationReason = (typeof VERIFICATION_REASONS)[number]

/** The public error body with the additional fields of `verification_failed` (contract README, "Webhook sources"). */
export const InternalErrorBody = Closed('InternalErrorBody', 'What went wrong.', {
  ...ErrorBody.properties,
  code: ErrorCodeOf(INTERNAL_ERROR_CODES),
  reason: Optional(StringEnum(VERIFICATION_REASONS, 'With `verification_failed`: why the endpoint did not confirm.')),
  delivery_id: Optional(Uuid("With `verification_failed`: the request's entry in the delivery log.")),
  status: Optional(Int('With `status` and `redirect`: the HTTP status answered.')),
  rejected_answer: Optional(
    Str('With `status` and `redirect`: at most the first 4 KiB of what the endpoint answered, without the secret.'),
  ),
  location: Optional(Nullable(Str('With `redirect`: its target; null without a Location header.'))),
})
export type InternalErrorBody = Static<typeof InternalErrorBody>

/** The body of every error of the internal API. */
export const InternalErrorResponse = Closed('InternalErrorResponse', 'The body of every error.', {
  error: InternalErrorBody,
})
