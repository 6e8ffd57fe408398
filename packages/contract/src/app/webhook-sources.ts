import { type Static, Type } from 'typebox'
import {
  APPROVAL_MODES,
  DELIVERY_KINDS,
  DELIVERY_OUTCOMES,
  DeliveryOut,
  WebhookSourceIn,
  WebhookSourceOut,
} from '../internal/resources.ts'
import { CURSOR_MAX_LENGTH, LIST_DEFAULT_LIMIT, LIST_MAX_LIMIT } from '../limits.ts'
import { DateTime, JsonObject, Nullable, StringEnum, Uuid } from '../schema/types.ts'
import { Closed, EditedVersion, NewOrEditedVersion, PageOf, PersonOut, Version } from './common.ts'

/** A request to an endpoint, in a few words. */
const LastRequestOut = Closed('LastRequestOut', 'A request to the endpoint.', {
  id: Uuid({ description: 'The delivery.' }),
  outcome: StringEnum(DELIVERY_OUTCOMES, { description: 'Its outcome.' }),
  reason: Nullable(Type.String({ description: 'Why it was not accepted.' })),
  created_at: DateTime({ description: 'When.' }),
})

export const AppWebhookSourceOut = Closed('AppWebhookSourceOut', 'A webhook source.', {
  ...WebhookSourceOut.properties,
  version: Version,
  last_verification: Nullable(LastRequestOut),
  last_payload: Nullable(LastRequestOut),
})
export type AppWebhookSourceOut = Static<typeof AppWebhookSourceOut>

export const AppWebhookSourceList = Closed('AppWebhookSourceList', 'Every webhook source, sorted by name.', {
  data: Type.Array(AppWebhookSourceOut, { description: 'The webhook sources.' }),
})

export const SaveWebhookSourceIn = Closed('SaveWebhookSourceIn', 'A webhook source to verify and save.', {
  ...WebhookSourceIn.properties,
  version: NewOrEditedVersion,
})

/** The settings that the contract does not name: saved without a verification request (contract README, "Webhook sources"). */
export const SaveWebhookSourceSettingsIn = Closed(
  'SaveWebhookSourceSettingsIn',
  'Settings of a webhook source that its endpoint does not confirm.',
  {
    approval: StringEnum(APPROVAL_MODES, {
      description: 'Which payloads of runs wait until a person approves them: `none`, the `first` or `always`.',
    }),
    version: EditedVersion,
  },
)

/** A delivery with what the log's drawer shows of it. */
export const AppDeliveryOut = Closed('AppDeliveryOut', 'One outbound request and its outcome.', {
  ...DeliveryOut.properties,
  request_body: Nullable(
    JsonObject('What was sent, without the signing secret. Null in a list when it has more than 8 KiB.'),
  ),
  source_name: Nullable(Type.String({ description: 'The webhook source; null when it was never saved.' })),
  workflow: Nullable(
    Closed('DeliveryWorkflowOut', 'The workflow of the run.', {
      id: Uuid({ description: 'The workflow.' }),
      name: Type.String({ description: 'Its name.' }),
    }),
  ),
  resent_as: Type.Array(Uuid({ description: 'A delivery that repeats this one.' }), {
    description: 'Oldest first, at most 20.',
  }),
  sent_by: Nullable(PersonOut),
})
export type AppDeliveryOut = Static<typeof AppDeliveryOut>

/** A delivery as one request shows it: how it was sent, what the agent received, and its neighbours in the log. */
export const DeliveryDetailOut = Closed('DeliveryDetailOut', 'One outbound request in full.', {
  ...AppDeliveryOut.properties,
  request_url: Nullable(
    Type.String({ description: 'The URL of the request; null for a payload that was recorded without it.' }),
  ),
  endpoint_url: Nullable(
    Type.String({ description: 'The URL of the source now; null when it was never saved, or is deleted.' }),
  ),
  needs_approval: Type.Boolean({
    description:
      'Whether the source asks for approval of what is sent now: then only an admin or owner sends it again.',
  }),
  headers: Type.Array(
    Closed('HeaderOut', 'A header.', {
      name: Type.String({ description: 'Its name.' }),
      value: Type.String({ description: 'Its value; a token is never shown.' }),
    }),
    { description: 'The headers of the request, without secrets.' },
  ),
  rejected_answer: Nullable(
    Type.String({
      description:
        'With `rejected`: at most the first 4 KiB of what the endpoint answered, without the secret; null when it was empty, compressed or not recorded. The agent does not receive it.',
    }),
  ),
  agent_answer: Nullable(Type.String({ description: 'What the agent received as the outcome; null without a run.' })),
  send_again: Nullable(
    Closed('SentAgainOut', 'Why the agent sent a payload that may have arrived once more.', {
      delivery_id: Uuid({ description: 'The earlier delivery of the same payload.' }),
      reason: Type.String({ description: 'The reason that the model gave.' }),
    }),
  ),
  newer_id: Nullable(Uuid({ description: 'The next newer delivery of the source.' })),
  older_id: Nullable(Uuid({ description: 'The next older delivery of the source.' })),
})
export type DeliveryDetailOut = Static<typeof DeliveryDetailOut>

/** A page of a member may have fewer entries than the limit although others follow: contract README, "Application". */
export const AppDeliveryPage = PageOf('AppDeliveryPage', AppDeliveryOut)
export type AppDeliveryPage = Static<typeof AppDeliveryPage>

export const ResendIn = Closed('ResendIn', 'Sends the payload of a delivery again, as a new delivery.', {
  resend_of: Uuid({ description: 'A payload delivery whose outcome is known.' }),
})

/** `limit` and `cursor` of every list. */
export const PAGE_QUERY = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: LIST_MAX_LIMIT,
      default: LIST_DEFAULT_LIMIT,
      description: 'Entries on the page.',
    }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: CURSOR_MAX_LENGTH, description: 'The `next_cursor` of the previous page.' }),
  ),
}

/** `since` and `until` of lists by time. */
export const PERIOD_QUERY = {
  since: Type.Optional(DateTime({ description: 'Only entries of this time or later.' })),
  until: Type.Optional(DateTime({ description: 'Only entries before this time.' })),
}

const ID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
const ID_LENGTH = 36

/** `ids` of lists whose entries change after they were listed. */
export const IDS_QUERY = {
  ids: Type.Optional(
    Type.String({
      pattern: `^${ID}(,${ID})*$`,
      maxLength: LIST_MAX_LIMIT * (ID_LENGTH + 1) - 1,
      description: `Only these entries, at most ${LIST_MAX_LIMIT} ids with commas between them. Filters and pages do not apply.`,
    }),
  ),
}

export const AppDeliveryQuery = Type.Object(
  {
    ...PAGE_QUERY,
    ...PERIOD_QUERY,
    ...IDS_QUERY,
    outcome: Type.Optional(StringEnum(DELIVERY_OUTCOMES, { description: 'Only entries with this outcome.' })),
    kind: Type.Optional(StringEnum(DELIVERY_KINDS, { description: 'Only entries of this kind.' })),
  },
  { title: 'AppDeliveryQuery', description: 'Query parameters of the delivery log.' },
)
