import { DELIVERY_KINDS, DELIVERY_OUTCOMES } from '../enumerations.ts'
import type { TSchema } from 'typebox'
import { PAGE_QUERY } from '../public/resources.ts'
import { NoticeBody, NoticeQuery, NoticeSentOut, NoticeWebhookIn } from '../notices.ts'
import { type BaseOperation, defineOperations, type OperationRow } from '../schema/define-operations.ts'
import { Optional, Parameters } from '../schema/objects.ts'
import { DateTime, Int, Str, StringEnum, Uuid } from '../schema/values.ts'
import { LookupCallIn, LookupCallOut, LookupIn, LookupOut } from './lookups.ts'
import {
  CancelQueuedIn,
  CancelQueuedOut,
  DeliveriesIn,
  DeliveriesLine,
  DeliveryIn,
  DeliveryOut,
  DeliveryPage,
  ModelKeyIn,
  WebhookSourceIn,
  WebhookSourceList,
  WebhookSourceOut,
} from './resources.ts'

/** One operation of the internal API: the dispatcher mounts it, the OpenAPI document describes it. */
export interface InternalOperation extends BaseOperation {
  readonly successes: readonly {
    readonly status: 200 | 201 | 204
    readonly schema?: TSchema
    /** Default: JSON. */
    readonly mediaType?: string
    readonly description: string
  }[]
}

/** Whether a save sends the verification request (contract README, "Internal API"). */
const WebhookSourceSaveQuery = Parameters({
  verify: Optional(
    StringEnum(
      ['always', 'if_changed', 'never'],
      '`always`: one verification request, even if nothing has changed. `if_changed`: none if the stored source is verified and equal in what the request carries; only `approval` is written then, if it differs. `never`: none; the source is stored unverified. For manifests only.',
      { default: 'always' },
    ),
  ),
  version: Optional(
    Int(
      'The version that was edited; 0 for a new source. If the stored one is another, nothing is sent (409 `source_changed`).',
      { minimum: 0, maximum: 2_147_483_647 },
    ),
  ),
})

/** Query parameters of the delivery log (contract README, "Internal API"). */
const DeliveryListQuery = Parameters({
  ...PAGE_QUERY,
  outcome: Optional(StringEnum(DELIVERY_OUTCOMES, 'Only entries with this outcome.')),
  kind: Optional(StringEnum(DELIVERY_KINDS, 'Only entries of this kind.')),
  since: Optional(DateTime('Only entries recorded at this time or later.')),
  until: Optional(DateTime('Only entries recorded before this time.')),
})

/** The parameters of paths. */
const PARAMS = {
  organization_id: Uuid('Organization identifier.', { examples: ['01890a5d-ac96-7ab2-80e2-4536629c90de'] }),
  source_id: Uuid('Webhook source identifier; the caller chooses it for a new source.', {
    examples: ['01890a5d-ac98-7c1e-b8f0-0a6a5b7c2d11'],
  }),
  lookup_id: Uuid('Look-up identifier; the caller chooses it for a new look-up.', {
    examples: ['01890a5d-ac98-7c1e-b8f0-0a6a5b7c2d12'],
  }),
  run_id: Uuid('Run identifier, which is that of its start.', { examples: ['01a1fd4e-f10a-7c3b-8d21-5b9e0f7a6c44'] }),
  delivery_id: Uuid('Delivery identifier, chosen by the caller.', {
    examples: ['01a1fd4e-f10a-7c3b-8d21-5b9e0f7a6c44'],
  }),
}

const LookupSaveQuery = Parameters({
  version: Optional(
    Int('The version that was edited; 0 for a new look-up. Another one is answered 409 `source_changed`.', {
      minimum: 0,
      maximum: 2_147_483_647,
    }),
  ),
})

/** Headers of the operations that an audit event records. */
const ActorHeaders = Parameters({
  'X-Actor': Optional(
    Str(
      'Who makes the change, as a JSON object in ASCII: `user_id` (null: the operator), `name` and `address` (or null). The change then has an audit event in its transaction. It is 403 `forbidden_for_role` unless the person is an admin of the organization when it is written, or a member, who may send payloads again and cancel runs.',
      {
        maxLength: 8_192,
        examples: ['{"user_id":"0199d4a6-58a0-7b6e-9c39-6b1f2a3c4d5e","name":"Ada","address":"192.0.2.1"}'],
      },
    ),
  ),
})

const ORGANIZATION = '/internal/organizations/{organization_id}'
const SOURCES = `${ORGANIZATION}/webhook-sources` as const

function saved<Schema extends TSchema>(schema: Schema, thing: string) {
  return [
    { status: 200, schema, description: `${thing} was changed.` },
    { status: 201, schema, description: `${thing} is new.` },
  ] as const
}

const ROWS = {
  listWebhookSources: {
    route: `get ${SOURCES}`,
    summary: 'List webhook sources',
    description: 'Returns every webhook source of the organization, sorted by name, without its secret.',
    successes: [{ status: 200, schema: WebhookSourceList, description: 'The webhook sources.' }],
  },
  getWebhookSource: {
    route: `get ${SOURCES}/{source_id}`,
    summary: 'Get a webhook source',
    description: 'Returns one webhook source without its secret.',
    successes: [{ status: 200, schema: WebhookSourceOut, description: 'The webhook source.' }],
  },
  saveWebhookSource: {
    route: `put ${SOURCES}/{source_id}`,
    summary: 'Save a webhook source',
    description:
      'Validates the source, sends exactly one verification request, and saves the source if the answer is 2xx within 10 seconds; otherwise nothing changes. Safe to repeat. Of two concurrent saves one wins; the other is answered 409 `source_changed`.',
    query: WebhookSourceSaveQuery,
    headers: ActorHeaders,
    body: WebhookSourceIn,
    successes: saved(WebhookSourceOut, 'The source'),
  },
  checkWebhookSource: {
    route: `post ${SOURCES}/{source_id}/check`,
    summary: 'Check a webhook source',
    description: 'Validates the body as a save does. Sends and saves nothing; the organization need not exist.',
    body: WebhookSourceIn,
    successes: [{ status: 204, description: 'A save would send the verification request.' }],
  },
  deleteWebhookSource: {
    route: `delete ${SOURCES}/{source_id}`,
    summary: 'Delete a webhook source',
    description: 'Deletes the source and its secret. Its log stays readable, and its id cannot be used again.',
    headers: ActorHeaders,
    successes: [{ status: 204, description: 'The source is deleted.' }],
  },
  testWebhookSource: {
    route: `post ${SOURCES}/{source_id}/test`,
    summary: 'Test a webhook source',
    description:
      'Sends the verification request once with the stored values and returns its outcome. If the endpoint confirms, the source counts as verified; otherwise nothing changes.',
    headers: ActorHeaders,
    successes: [{ status: 200, schema: DeliveryOut, description: 'The outcome of the verification request.' }],
  },
  pauseWebhookSource: {
    route: `post ${SOURCES}/{source_id}/pause`,
    summary: 'Pause a webhook source',
    description: 'Its payloads wait (503 `source_paused`) until it is resumed; those under way are finished.',
    headers: ActorHeaders,
    successes: [{ status: 204, description: 'The source is paused.' }],
  },
  resumeWebhookSource: {
    route: `post ${SOURCES}/{source_id}/resume`,
    summary: 'Resume a webhook source',
    description: 'Runs that wait for it go on, in the order of their starts.',
    headers: ActorHeaders,
    successes: [{ status: 204, description: 'The source is not paused.' }],
  },
  saveLookup: {
    route: `put ${ORGANIZATION}/lookups/{lookup_id}`,
    summary: 'Save a look-up',
    description:
      'Validates the look-up and saves it. Of an MCP server, it asks for the tools first: their descriptions and parameters are saved as they are then. Safe to repeat.',
    query: LookupSaveQuery,
    headers: ActorHeaders,
    body: LookupIn,
    successes: saved(LookupOut, 'The look-up'),
  },
  callLookup: {
    route: `post ${ORGANIZATION}/lookups/{lookup_id}/call`,
    summary: 'Call a tool of a look-up',
    description: 'Makes the requests once and answers what came back. They read only, so a call may be repeated.',
    headers: ActorHeaders,
    body: LookupCallIn,
    successes: [{ status: 200, schema: LookupCallOut, description: 'What the look-up answered.' }],
  },
  listDeliveries: {
    route: `get ${SOURCES}/{source_id}/deliveries`,
    summary: 'Read the log of a webhook source',
    description: 'Returns the log one page at a time, newest first; also the log of a deleted source.',
    query: DeliveryListQuery,
    successes: [{ status: 200, schema: DeliveryPage, description: 'One page of the log.' }],
  },
  sendPayload: {
    route: 'put /internal/deliveries/{delivery_id}',
    summary: 'Send a payload',
    description:
      'Sends the payload, or that of an earlier delivery again, at most once for a delivery id, and answers once the outcome is known, which takes up to a minute. A repeated call with the same id returns the recorded outcome and sends nothing. After a 503 this call sent nothing: repeat it with the same id.',
    headers: ActorHeaders,
    body: DeliveryIn,
    successes: [{ status: 200, schema: DeliveryOut, description: 'The outcome of the delivery.' }],
  },
  sendPayloads: {
    route: 'post /internal/deliveries',
    summary: 'Send payloads',
    description:
      'Does for each payload what `sendPayload` does, and answers each with a line as soon as its outcome is known. A payload without a line, because the connection was lost, may have been sent: repeat it with the same id.',
    body: DeliveriesIn,
    successes: [
      {
        status: 200,
        schema: DeliveriesLine,
        mediaType: 'application/x-ndjson',
        description: 'One line of JSON for each payload, in the order in which their outcomes are known.',
      },
    ],
  },
  saveModelKey: {
    route: `put ${ORGANIZATION}/model-keys`,
    summary: "Save a key of an organization's own for a model",
    description: 'Encrypts it like the secret of a webhook source. No request is made: a runner tries it.',
    headers: ActorHeaders,
    body: ModelKeyIn,
    successes: [{ status: 204, description: 'It is saved.' }],
  },
  saveNoticeWebhook: {
    route: `put ${ORGANIZATION}/notice-webhook`,
    summary: 'Save where notices are sent',
    description: 'No request is made. The secret is encrypted like that of a webhook source.',
    headers: ActorHeaders,
    body: NoticeWebhookIn,
    successes: [{ status: 204, description: 'It is saved.' }],
  },
  sendNotice: {
    route: `post ${ORGANIZATION}/notices`,
    summary: 'Send a notice to the webhook',
    description: 'Once, signed, within 10 seconds, with the checks of payloads. The caller repeats it.',
    query: NoticeQuery,
    body: NoticeBody,
    successes: [{ status: 200, schema: NoticeSentOut, description: 'Whether it was accepted.' }],
  },
  cancelRun: {
    route: `post ${ORGANIZATION}/runs/{run_id}/cancel`,
    summary: 'Cancel a run',
    description:
      'Ends a run that has not ended, before its next step. A payload that is under way is finished and recorded. 409 `run_ended` if it has ended.',
    headers: ActorHeaders,
    successes: [{ status: 204, description: 'The run is cancelled.' }],
  },
  cancelQueuedRuns: {
    route: `post ${ORGANIZATION}/runs/cancel-queued`,
    summary: 'Cancel queued runs',
    description: 'Cancels the runs of a workflow or session that no runner has begun.',
    headers: ActorHeaders,
    body: CancelQueuedIn,
    successes: [{ status: 200, schema: CancelQueuedOut, description: 'How many were cancelled.' }],
  },
} as const satisfies Record<string, OperationRow<InternalOperation>>

/** Every operation of the internal API (contract README, "Internal API"). */
export const INTERNAL_OPERATIONS = defineOperations(ROWS, PARAMS)
