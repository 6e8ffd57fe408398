import { type Static, Type } from 'typebox'
import { SIGNING_SECRET_MAX_LENGTH, ENDPOINT_URL_MAX_LENGTH } from './limits.ts'
import { Closed, JsonObject, List, Nullable } from './schema/objects.ts'
import { Bool, DateTime, Int, Str, StringEnum, Text, Uuid } from './schema/values.ts'

/** The notices that people choose (contract README, "Notices"). */
export const NOTICE_KINDS = ['failures', 'approvals', 'sources', 'keys'] as const
export type NoticeKind = (typeof NOTICE_KINDS)[number]

export const NOTICE_TYPES = [
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

export const NoticeWebhookIn = Closed('NoticeWebhookIn', 'Where notices are sent.', {
  url: Text(ENDPOINT_URL_MAX_LENGTH, 'https:// or http://, publicly reachable.', 1),
  signing_secret: Type.Optional(
    Nullable(
      Text(SIGNING_SECRET_MAX_LENGTH, 'Signs every notice. Absent keeps the stored secret; null removes it.', 1),
    ),
  ),
})
export type NoticeWebhookIn = Static<typeof NoticeWebhookIn>

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
    }),
  ),
  data: List(NoticeOut, 'The newest 50.'),
})
export const MyNoticesOut = Closed('MyNoticesOut', 'The notices that the person gets by e-mail.', {
  kinds: List(StringEnum(NOTICE_KINDS, 'A kind.'), 'The kinds; none: nothing.'),
  has_mail: Bool('Whether the service can send e-mail.'),
})
export const MyNoticesIn = Closed('MyNoticesIn', 'The notices to get by e-mail.', {
  kinds: MyNoticesOut.properties.kinds,
})
