import { DELIVERY_KINDS, DELIVERY_OUTCOMES } from '../enumerations.ts'
import { APPROVAL_MODES, DeliveryOut, WebhookSourceIn, WebhookSourceOut } from '../internal/resources.ts'
import { LIST_MAX_LIMIT, SEARCH_MAX_LENGTH, WAITING_COUNTED_MAX } from '../limits.ts'
import { PAGE_QUERY } from '../public/resources.ts'
import { Closed, JsonObject, List, Nullable, Optional, Parameters, type Static } from '../schema/objects.ts'
import { Bool, DateTime, Int, named, Str, StringEnum, Text, Uuid } from '../schema/values.ts'
import { EditedVersion, NewOrEditedVersion, PersonOut, Version, ListOf } from './common.ts'
import { Type } from '../schema/type.ts'

/** A request to an endpoint, in a few words. */
const LastRequestOut = Closed('LastRequestOut', 'A request to the endpoint.', {
  id: Uuid('The delivery.'),
  outcome: StringEnum(DELIVERY_OUTCOMES, 'Its outcome.'),
  reason: Nullable(Str('Why it was not accepted.')),
  created_at: DateTime('When.'),
})

const OF_APP = {
  version: Version,
  paused_by: Nullable(Str('Who paused it.')),
  last_verification: Nullable(LastRequestOut),
  last_payload: Nullable(LastRequestOut),
}

export const AppWebhookSourceOut = Closed('AppWebhookSourceOut', 'A webhook source.', {
  ...WebhookSourceOut.properties,
  ...OF_APP,
  state: Optional(
    Closed('SourceStateOut', 'How it is; only of one source that is read.', {
      waiting_runs: Int(`Runs that wait until it is resumed, at most ${WAITING_COUNTED_MAX.toLocaleString('en')}.`),
      failing: Nullable(
        Closed('SourceFailingOut', 'Its last payloads: at least 50 in a row over 10 minutes were not accepted.', {
          count: Int(`How many, at most ${WAITING_COUNTED_MAX.toLocaleString('en')}.`),
          since: DateTime('When the first of them was sent.'),
        }),
      ),
    }),
  ),
})
export type AppWebhookSourceOut = Static<typeof AppWebhookSourceOut>

const { description: _description, example_request_body: _example, ...LISTED } = WebhookSourceOut.properties

/** A webhook source in a list: an organization may have 1,000, and each 100 KiB of texts for agents. */
export const AppListedWebhookSourceOut = Closed(
  'AppListedWebhookSourceOut',
  'A webhook source without its description and its example, which are read with it.',
  { ...LISTED, ...OF_APP },
)
export type AppListedWebhookSourceOut = Static<typeof AppListedWebhookSourceOut>

export const AppWebhookSourceList = ListOf(
  'AppWebhookSourceList',
  AppListedWebhookSourceOut,
  'Every webhook source, sorted by name.',
)

export const SaveWebhookSourceIn = Closed('SaveWebhookSourceIn', 'A webhook source to verify and save.', {
  ...WebhookSourceIn.properties,
  version: NewOrEditedVersion,
})

/**
 * The settings that the contract does not name: saved without a verification request (contract README, "Webhook
 * sources").
 */
export const SaveWebhookSourceSettingsIn = Closed(
  'SaveWebhookSourceSettingsIn',
  'Settings of a webhook source that its endpoint does not confirm.',
  {
    approval: StringEnum(
      APPROVAL_MODES,
      'Which payloads of runs wait until a person approves them: `none`, the `first` or `always`.',
    ),
    version: EditedVersion,
  },
)

/** A delivery with what the log's drawer shows of it. */
export const AppDeliveryOut = Closed('AppDeliveryOut', 'One outbound request and its outcome.', {
  ...DeliveryOut.properties,
  request_body: Nullable(
    JsonObject('What was sent, without the signing secret. Null in a list when it has more than 8 KiB.'),
  ),
  source_name: Nullable(Str('The webhook source; null when it was never saved.')),
  workflow: Nullable(Closed('DeliveryWorkflowOut', 'The workflow of the run.', named('The workflow.'))),
  resent_as: List(Uuid('A delivery that repeats this one.'), 'Oldest first, at most 20.'),
  sent_by: Nullable(PersonOut),
})
export type AppDeliveryOut = Static<typeof AppDeliveryOut>

/** A delivery as one request shows it: how it was sent, and what the agent received. */
export const DeliveryDetailOut = Closed('DeliveryDetailOut', 'One outbound request in full.', {
  ...AppDeliveryOut.properties,
  request_url: Nullable(Str('The URL of the request; null for a payload that was recorded without it.')),
  endpoint_url: Nullable(Str('The URL of the source now; null when it was never saved, or is deleted.')),
  needs_approval: Bool(
    'Whether the source asks for approval of what is sent now: then only an admin or owner sends it again.',
  ),
  headers: List(
    Closed('HeaderOut', 'A header.', {
      name: Str('Its name.'),
      value: Str('Its value; a token is never shown.'),
    }),
    'The headers of the request, without secrets.',
  ),
  rejected_answer: Nullable(
    Str(
      'With `rejected`: at most the first 4 KiB of what the endpoint answered, without the secret; null when it was empty, compressed or not recorded. The agent does not receive it.',
    ),
  ),
  answer_headers: Nullable(
    Type.Record(Type.String(), Type.String(), {
      description:
        'Headers of the answer by which people tell what answered, without secrets; null without an answer, or for an accepted one without a text.',
    }),
  ),
  agent_answer: Nullable(Str('What the agent received as the outcome; null without a run.')),
  send_again: Nullable(
    Closed('SentAgainOut', 'Why the agent sent a payload that may have arrived once more.', {
      delivery_id: Uuid('The earlier delivery of the same payload.'),
      reason: Str('The reason that the model gave.'),
    }),
  ),
})
export type DeliveryDetailOut = Static<typeof DeliveryDetailOut>

export const ResendIn = Closed('ResendIn', 'Sends the payload of a delivery again, as a new delivery.', {
  resend_of: Uuid('A payload delivery whose outcome is known.'),
})

/** `since` and `until` of lists by time. */
export const PERIOD_QUERY = {
  since: Optional(DateTime('Only entries of this time or later.')),
  until: Optional(DateTime('Only entries before this time.')),
}

const ID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
const ID_LENGTH = 36

/** `ids` of lists whose entries change after they were listed. */
export const IDS_QUERY = {
  ids: Optional(
    Str(`Only these entries, at most ${LIST_MAX_LIMIT} ids with commas between them. Filters and pages do not apply.`, {
      pattern: `^${ID}(,${ID})*$`,
      maxLength: LIST_MAX_LIMIT * (ID_LENGTH + 1) - 1,
    }),
  ),
}

/** How searches compare (docs/application.md, "Search"). */
export const SEARCHED =
  'all of these words and numbers, such as `NEEDLE-7731`, ignoring case, or with these last 8 characters of an id,'

/** Which deliveries of all sources are listed, or sent again. The search is trimmed in a body, not in a query. */
export const DELIVERY_FILTERS = {
  ...PERIOD_QUERY,
  source_id: Optional(Uuid('Only deliveries to this webhook source.')),
  outcome: Optional(StringEnum(DELIVERY_OUTCOMES, 'Only deliveries with this outcome.')),
  status: Optional(Int('Only deliveries whose answer has this status.', { minimum: 0, maximum: 999 })),
  workflow_id: Optional(Uuid('Only deliveries of this workflow.')),
  sent_again: Optional(StringEnum(['yes', 'no'], 'Only deliveries that a person has, or has not, sent again.')),
  needs_attention: Optional(
    StringEnum(['yes', 'no'], 'Only payloads that need attention (docs/application.md, "Attention"), or all others.'),
  ),
  search: Optional(
    Text(
      SEARCH_MAX_LENGTH,
      `Only deliveries with ${SEARCHED} in their payload, in the text of their start, or as an id.`,
      0,
      { format: 'trimmed' },
    ),
  ),
}

const LIST_QUERY = {
  ...PAGE_QUERY,
  ...IDS_QUERY,
  ...DELIVERY_FILTERS,
  kind: Optional(StringEnum(DELIVERY_KINDS, 'Only deliveries of this kind.')),
}
export const AllDeliveriesQuery = Parameters(LIST_QUERY)
const { source_id: _, ...OF_SOURCE } = LIST_QUERY
export const AppDeliveryQuery = Parameters(OF_SOURCE)

export const SourceWorkflowList = ListOf(
  'SourceWorkflowList',
  Closed('SourceWorkflowOut', 'A workflow.', {
    ...named('The workflow.'),
    is_active: Bool('Whether it can be started.'),
  }),
  'Workflows that name a webhook source, by name.',
)
