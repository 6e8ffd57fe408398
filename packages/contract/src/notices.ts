import { SIGNING_SECRET_MAX_LENGTH, ENDPOINT_URL_MAX_LENGTH } from './limits.ts'
import { Closed, JsonObject, List, Nullable, Optional, Parameters, type Static } from './schema/objects.ts'
import { Bool, DateTime, Int, Str, StringEnum, Text, Uuid } from './schema/values.ts'

/** The notices that people choose (docs/application.md, "Notices"). */
const NOTICE_KINDS = ['failures', 'approvals', 'sources', 'keys'] as const
export type NoticeKind = (typeof NOTICE_KINDS)[number]

/** The events for programs that an organization chooses (contract README, "Events"). */
const RUN_EVENT_TYPES = ['run.failed', 'run.cancelled', 'approval.waiting'] as const
export type RunEventType = (typeof RUN_EVENT_TYPES)[number]

const NOTICE_TYPES = [
  ...RUN_EVENT_TYPES,
  'notice.failures',
  'notice.approvals',
  'notice.source_paused',
  'notice.source_failing',
  'notice.key_expiring',
  'notice.test',
] as const

/** The body of a notice to the webhook of an organization. Slack shows its `text`. */
export const NoticeBody = Closed('NoticeBody', 'A notice.', {
  id: Uuid('The notice, the same when it is tried again.'),
  type: StringEnum(NOTICE_TYPES, 'What it is about.'),
  organization_id: Uuid('The organization.'),
  created_at: DateTime('When it was made.'),
  text: Text(5_000, 'A sentence for people.'),
  data: JsonObject('For programs: ids, names and counts.'),
})
export type NoticeBody = Static<typeof NoticeBody>

/** One run, for programs. */
export const RunEvent = Closed('RunEvent', 'What happened to one run.', {
  id: Uuid('The event, the same when it is tried again: `X-Delivery-Id`.'),
  type: StringEnum(RUN_EVENT_TYPES, 'What happened. Ignore types that you do not know: notices for people are others.'),
  organization_id: Uuid('The organization.'),
  created_at: DateTime('When the event was made.'),
  text: Text(5_000, 'A sentence for people.'),
  data: Closed('RunEventData', 'The run. `GET /v1/runs/{run_id}` has the rest.', {
    at: DateTime('When it happened.'),
    run_id: Uuid('The run: the `id` of its start.'),
    workflow_id: Uuid('The workflow.'),
    session_id: Uuid('The session.'),
    error_code: Nullable(Str('Why it failed, of `run.failed`. New codes may be added.', { examples: ['rule_failed'] })),
    delivery_id: Nullable(Uuid('The payload that waits, of `approval.waiting`.')),
    source_id: Nullable(Uuid('The webhook source that it is for, of `approval.waiting`.')),
  }),
})
export type RunEvent = Static<typeof RunEvent>

const RunEvents = List(StringEnum(RUN_EVENT_TYPES, 'A type.'), 'The events that it gets beside notices.', {
  uniqueItems: true,
})

export const NoticeWebhookIn = Closed('NoticeWebhookIn', 'Where notices are sent.', {
  url: Text(ENDPOINT_URL_MAX_LENGTH, 'https:// or http://, publicly reachable.', 1, { format: 'trimmed' }),
  signing_secret: Optional(
    Nullable(
      Text(SIGNING_SECRET_MAX_LENGTH, 'Signs every notice. Absent keeps the stored secret; null removes it.', 1),
    ),
  ),
  events: Optional(RunEvents),
})

export const NoticeQuery = Parameters({
  attempt: Optional(Int('How often it was sent with this request.', { minimum: 1, maximum: 1_000, default: 1 })),
})

export const NoticeSentOut = Closed('NoticeSentOut', 'What became of a notice.', {
  error: Nullable(Str('Why it was not sent; null: it was.')),
})

export const NoticeOut = Closed('NoticeOut', 'A notice to one recipient.', {
  id: Uuid('The notice.'),
  created_at: DateTime('When it was made.'),
  channel: StringEnum(['email', 'webhook'], 'How it is sent.'),
  recipient: Str('The email address or the URL.'),
  text: Str('What it says.'),
  status: StringEnum(['waiting', 'sent', 'failed'], '`failed`: it could not be sent for an hour.'),
  attempts: Int('How often it was tried.'),
  error: Nullable(Str('Why the last attempt failed.')),
})
export type NoticeOut = Static<typeof NoticeOut>

export const NoticesOut = Closed('NoticesOut', 'Where notices go, and the newest ones.', {
  webhook: Nullable(
    Closed('NoticeWebhookOut', 'The webhook.', {
      url: Str('Its URL.'),
      has_signing_secret: Bool('Whether notices are signed.'),
      events: RunEvents,
    }),
  ),
  data: List(NoticeOut, 'The newest 50.'),
})
export const MyNoticesOut = Closed('MyNoticesOut', 'The notices that the person gets by email.', {
  kinds: List(StringEnum(NOTICE_KINDS, 'A kind.'), 'The kinds; none: nothing.'),
  has_mail: Bool('Whether the service can send email.'),
})
export const MyNoticesIn = Closed('MyNoticesIn', 'The notices to get by email.', {
  kinds: MyNoticesOut.properties.kinds,
})
