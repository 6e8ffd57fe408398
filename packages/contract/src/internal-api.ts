import { type Static, type TSchema, Type } from 'typebox'
import { ErrorBody, FieldError } from './errors.ts'
import { PageInfo } from './resources.ts'
import { closed, DateTime, Nullable, StringEnum, Uuid } from './schema.ts'

/** Contract 2, webhook source: the URL's length. */
export const ENDPOINT_URL_MAX_LENGTH = 2_000
/** Contract 8: how long the answer of a verification and of a payload request may take. */
export const VERIFICATION_DEADLINE_MS = 10_000
export const PAYLOAD_DEADLINE_MS = 30_000
/** Contract 8: the answer text that the agent can read, in characters. */
export const ANSWER_MAX_LENGTH = 300
/** An example and a payload hold at most this much as compact JSON, in bytes. */
export const PAYLOAD_MAX_BYTES = 256 * 1024
/** Contract 4.5: the `type` that tells a verification request from a payload. */
export const VERIFICATION_TYPE = 'service.webhook.verification'

const JsonObject = (description: string) =>
  Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true, description })

/** Body of `PUT …/webhook-sources/{s}` (design 7). */
export const WebhookSourceIn = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 200,
      format: 'storable',
      description: 'Unique in the organization, ignoring case; the agent reads it.',
    }),
    description: Type.String({
      maxLength: 10_000,
      format: 'storable',
      description: 'When to use the source; the agent reads it.',
    }),
    endpoint_url: Type.String({
      minLength: 1,
      maxLength: ENDPOINT_URL_MAX_LENGTH,
      format: 'storable',
      description: 'Where the requests go: https:// or http://, publicly reachable.',
    }),
    signing_secret: Type.Optional(
      Nullable(
        Type.String({
          minLength: 1,
          maxLength: 1_000,
          format: 'storable',
          description:
            'Signs every request; at least 32 random bytes are recommended. Absent keeps what is stored; null means none.',
        }),
      ),
    ),
    example_request_body: JsonObject('Shows field names, nesting and value types; every payload is modelled on it.'),
  },
  { ...closed, title: 'WebhookSourceIn', description: 'A webhook source to save.' },
)
export type WebhookSourceIn = Static<typeof WebhookSourceIn>

/** A saved webhook source, without its secret. */
export const WebhookSourceOut = Type.Object(
  {
    id: Uuid({ description: 'Constant for the life of the source.' }),
    organization_id: Uuid({ description: 'The organization that it belongs to.' }),
    name: Type.String({ description: 'Its name.' }),
    description: Type.String({ description: 'When to use it.' }),
    endpoint_url: Type.String({ description: 'The URL exactly as entered.' }),
    has_signing_secret: Type.Boolean({ description: 'Whether requests carry X-Service-Token.' }),
    example_request_body: JsonObject('The example as entered.'),
    created_at: DateTime({ description: 'When it was first saved.' }),
    updated_at: DateTime({ description: 'When it was last changed.' }),
    verified_at: Nullable(
      DateTime({ description: 'When its endpoint last confirmed; null if it was recorded unverified.' }),
    ),
  },
  { ...closed, title: 'WebhookSourceOut', description: 'A webhook source.' },
)
export type WebhookSourceOut = Static<typeof WebhookSourceOut>

/** What came of a delivery (design 7). */
export const DELIVERY_OUTCOMES = [
  'accepted',
  'rejected',
  'timed_out',
  'unreachable',
  'refused',
  'invalid',
  'unknown',
  'in_flight',
] as const
export type DeliveryOutcome = (typeof DELIVERY_OUTCOMES)[number]
export const DELIVERY_KINDS = ['verification', 'payload'] as const
export type DeliveryKind = (typeof DELIVERY_KINDS)[number]

/** Body of `PUT /internal/deliveries/{d}` (design 7). */
export const DeliveryIn = Type.Object(
  {
    organization_id: Uuid({ description: 'The organization.' }),
    source_id: Uuid({ description: 'The webhook source to send to.' }),
    payload: JsonObject('What to send: shaped like the example.'),
    run_id: Type.Optional(Nullable(Uuid({ description: 'The run that sends it.' }))),
    lease: Type.Optional(
      Nullable(
        Type.Object(
          {
            session_id: Uuid({ description: 'The session that the runner holds.' }),
            epoch: Type.Integer({
              minimum: 0,
              maximum: Number.MAX_SAFE_INTEGER,
              description: 'The epoch of its lease; sent only while it is the current one.',
            }),
          },
          { ...closed, title: 'LeaseIn', description: "The runner's lease of the session." },
        ),
      ),
    ),
  },
  { ...closed, title: 'DeliveryIn', description: 'A payload to send once.' },
)
export type DeliveryIn = Static<typeof DeliveryIn>

/** One entry of the delivery log. */
export const DeliveryOut = Type.Object(
  {
    id: Uuid({ description: 'The id that the caller chose.' }),
    organization_id: Uuid({ description: 'The organization.' }),
    source_id: Uuid({ description: 'The webhook source.' }),
    kind: StringEnum(DELIVERY_KINDS, { description: 'Which of the two requests it was.' }),
    outcome: StringEnum(DELIVERY_OUTCOMES, { description: 'What came of it.' }),
    status: Nullable(Type.Integer({ description: "The answer's HTTP status; null when there was none." })),
    reason: Nullable(Type.String({ description: 'Why it was not accepted, in words; null when it was.' })),
    mismatches: Nullable(
      Type.Array(FieldError, {
        description: 'Of an `invalid` payload: each field that does not follow the example; else null.',
      }),
    ),
    duration_ms: Nullable(Type.Integer({ description: 'From the first step to the outcome, in milliseconds.' })),
    answer: Nullable(Type.String({ description: "The answer's text: one line, at most 300 characters, else null." })),
    request_body: JsonObject('What was sent, the signing secret left out.'),
    session_id: Nullable(Uuid({ description: 'The session of the run.' })),
    run_id: Nullable(Uuid({ description: 'The run that sent it.' })),
    request_id: Nullable(Type.String({ description: 'The request that it follows from.' })),
    created_at: DateTime({ description: 'When it was recorded.' }),
    finished_at: Nullable(DateTime({ description: 'When its outcome was known; null while in flight.' })),
  },
  { ...closed, title: 'DeliveryOut', description: 'One outbound request and what came of it.' },
)
export type DeliveryOut = Static<typeof DeliveryOut>

/** Query of `GET …/deliveries`. */
export const DeliveryListQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 25, description: 'Entries on the page.' })),
    cursor: Type.Optional(
      Type.String({
        maxLength: 512,
        description: 'The `next_cursor` of the page before; omit it to start at the top.',
      }),
    ),
    outcome: Type.Optional(StringEnum(DELIVERY_OUTCOMES, { description: 'Only entries with this outcome.' })),
    kind: Type.Optional(StringEnum(DELIVERY_KINDS, { description: 'Only entries of this kind.' })),
    since: Type.Optional(DateTime({ description: 'Only entries recorded at this time or later.' })),
    until: Type.Optional(DateTime({ description: 'Only entries recorded before this time.' })),
  },
  { title: 'DeliveryListQuery', description: 'Query parameters of the delivery log.' },
)
export type DeliveryListQuery = Static<typeof DeliveryListQuery>

/** Answer of `GET …/deliveries`: newest first. */
export const DeliveryPage = Type.Object(
  { data: Type.Array(DeliveryOut, { description: 'Entries, newest first.' }), pagination: PageInfo },
  { ...closed, title: 'DeliveryPage', description: 'One page of the delivery log.' },
)
export type DeliveryPage = Static<typeof DeliveryPage>

/** Answer of `GET …/webhook-sources`: sorted by name. */
export const WebhookSourceList = Type.Object(
  { data: Type.Array(WebhookSourceOut, { description: 'Every webhook source of the organization, sorted by name.' }) },
  { ...closed, title: 'WebhookSourceList', description: 'The webhook sources of an organization.' },
)
export type WebhookSourceList = Static<typeof WebhookSourceList>

/** When a save sends the verification request. */
export const VERIFY_MODES = ['always', 'if_changed', 'never'] as const

/** Query of `PUT …/webhook-sources/{s}`. */
export const WebhookSourceSaveQuery = Type.Object(
  {
    verify: Type.Optional(
      StringEnum(VERIFY_MODES, {
        default: 'always',
        description:
          '`always`: one verification request, whatever has changed. `if_changed`: none, and nothing is written, if the stored source is equal and verified. `never`: none; the source is stored unverified. For manifests only.',
      }),
    ),
  },
  { title: 'WebhookSourceSaveQuery', description: 'Query parameters of a save.' },
)
export type WebhookSourceSaveQuery = Static<typeof WebhookSourceSaveQuery>

/** Why a verification request did not confirm a source (design 7). */
export const VERIFICATION_REASONS = ['status', 'timed_out', 'unreachable', 'redirect', 'url_not_public'] as const
export type VerificationReason = (typeof VERIFICATION_REASONS)[number]

/** The public error body with what the internal API says beyond it. */
export const InternalErrorBody = Type.Object(
  {
    ...ErrorBody.properties,
    reason: Type.Optional(
      StringEnum(VERIFICATION_REASONS, {
        description: 'With `verification_failed`: why the endpoint did not confirm.',
      }),
    ),
    delivery_id: Type.Optional(Uuid({ description: "With `verification_failed`: the request's entry in the log." })),
    status: Type.Optional(Type.Integer({ description: 'With `status` and `redirect`: the HTTP status answered.' })),
    location: Type.Optional(
      Nullable(Type.String({ description: 'With `redirect`: where it points; null when it did not say.' })),
    ),
    kind: Type.Optional(
      Type.String({
        description:
          'With `unreachable`: `name_not_found`, `dns_failed`, `connection_refused`, `connection_reset`, `connection_closed`, `no_route`, `tls`, `invalid_answer`, `proxy`, `beyond_proxy` or `other`. With `timed_out`: the step that took too long: `dns`, `connect`, `tls` or `answer`.',
      }),
    ),
    tls_fault: Type.Optional(
      Type.String({
        description:
          'With the kind `tls`: `expired`, `not_yet_valid`, `self_signed`, `untrusted`, `wrong_name`, `revoked`, `protocol` or `other`.',
      }),
    ),
    address: Type.Optional(
      Nullable(Type.String({ description: 'With `url_not_public`: the address that is not public, if one is known.' })),
    ),
  },
  { ...closed, title: 'InternalErrorBody', description: 'What went wrong.' },
)
export type InternalErrorBody = Static<typeof InternalErrorBody>

/** The body of every error of the internal API. */
export const InternalErrorResponse = Type.Object(
  { error: InternalErrorBody },
  { ...closed, title: 'InternalErrorResponse', description: 'The body of every error.' },
)

/** One operation of the internal API, as the dispatcher mounts it and its OpenAPI document shows it. */
export interface InternalOperation {
  readonly id: string
  readonly method: 'get' | 'put' | 'post' | 'delete'
  /** OpenAPI style: `/internal/deliveries/{delivery_id}`. */
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly params: TSchema
  readonly query?: TSchema
  readonly body?: TSchema
  readonly successes: readonly {
    readonly status: 200 | 201 | 204
    readonly schema?: TSchema
    readonly description: string
  }[]
}

const OrganizationParams = Type.Object(
  { organization_id: Uuid({ description: 'Organization identifier.' }) },
  { ...closed, title: 'OrganizationParams', description: 'Path parameters.' },
)
const WebhookSourceParams = Type.Object(
  {
    organization_id: Uuid({ description: 'Organization identifier.' }),
    source_id: Uuid({ description: 'Webhook source identifier; the caller chooses it for a new source.' }),
  },
  { ...closed, title: 'WebhookSourceParams', description: 'Path parameters.' },
)
const DeliveryParams = Type.Object(
  { delivery_id: Uuid({ description: 'Delivery identifier, chosen by the caller.' }) },
  { ...closed, title: 'DeliveryParams', description: 'Path parameters.' },
)

const SOURCES_PATH = '/internal/organizations/{organization_id}/webhook-sources'

/** Design 7: every operation of the dispatcher's internal API. */
export const INTERNAL_OPERATIONS = {
  listWebhookSources: {
    id: 'listWebhookSources',
    method: 'get',
    path: SOURCES_PATH,
    summary: 'List webhook sources',
    description: 'Returns every webhook source of the organization, sorted by name, without its secret.',
    params: OrganizationParams,
    successes: [{ status: 200, schema: WebhookSourceList, description: 'The webhook sources.' }],
  },
  getWebhookSource: {
    id: 'getWebhookSource',
    method: 'get',
    path: `${SOURCES_PATH}/{source_id}`,
    summary: 'Get a webhook source',
    description: 'Returns one webhook source without its secret.',
    params: WebhookSourceParams,
    successes: [{ status: 200, schema: WebhookSourceOut, description: 'The webhook source.' }],
  },
  saveWebhookSource: {
    id: 'saveWebhookSource',
    method: 'put',
    path: `${SOURCES_PATH}/{source_id}`,
    summary: 'Save a webhook source',
    description:
      'Checks what was entered, sends exactly one verification request, and saves the source whole once a 2xx answer came within 10 seconds; otherwise nothing changes. Safe to repeat. Of two saves at once, one wins whole and the other is told so (409 `source_changed`).',
    params: WebhookSourceParams,
    query: WebhookSourceSaveQuery,
    body: WebhookSourceIn,
    successes: [
      { status: 200, schema: WebhookSourceOut, description: 'The source was changed.' },
      { status: 201, schema: WebhookSourceOut, description: 'The source is new.' },
    ],
  },
  deleteWebhookSource: {
    id: 'deleteWebhookSource',
    method: 'delete',
    path: `${SOURCES_PATH}/{source_id}`,
    summary: 'Delete a webhook source',
    description: 'Deletes the source and its secret. Its log stays readable, and its id cannot be used again.',
    params: WebhookSourceParams,
    successes: [{ status: 204, description: 'The source is deleted.' }],
  },
  testWebhookSource: {
    id: 'testWebhookSource',
    method: 'post',
    path: `${SOURCES_PATH}/{source_id}/test`,
    summary: 'Test a webhook source',
    description:
      'Saves the source again as it stands: sends the verification request once with the stored values and says what came of it. An endpoint that does not confirm changes nothing.',
    params: WebhookSourceParams,
    successes: [{ status: 200, schema: DeliveryOut, description: 'What came of the verification request.' }],
  },
  listDeliveries: {
    id: 'listDeliveries',
    method: 'get',
    path: `${SOURCES_PATH}/{source_id}/deliveries`,
    summary: 'Read the log of a webhook source',
    description: 'Returns the log one page at a time, newest first; also of a source that was deleted.',
    params: WebhookSourceParams,
    query: DeliveryListQuery,
    successes: [{ status: 200, schema: DeliveryPage, description: 'One page of the log.' }],
  },
  sendPayload: {
    id: 'sendPayload',
    method: 'put',
    path: '/internal/deliveries/{delivery_id}',
    summary: 'Send a payload',
    description:
      'Sends the payload at most once for a delivery id, and answers once the outcome is known, which takes up to 45 seconds. Asked again with the same id, it answers with what was recorded and sends nothing. After a 503, nothing was sent by this call: ask again with the same id.',
    params: DeliveryParams,
    body: DeliveryIn,
    successes: [{ status: 200, schema: DeliveryOut, description: 'What came of the delivery.' }],
  },
} as const satisfies Record<string, InternalOperation>
export type InternalOperationId = keyof typeof INTERNAL_OPERATIONS
