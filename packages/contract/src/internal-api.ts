import { type Static, Type } from 'typebox'
import { PageInfo } from './resources.ts'
import { closed, DateTime, Nullable, StringEnum, Uuid } from './schema.ts'

/** Contract 2, webhook source: the URL's length. */
export const ENDPOINT_URL_MAX_LENGTH = 2_000
/** Contract 8: how long the answer of a verification and of a payload request may take. */
export const VERIFICATION_DEADLINE_MS = 10_000
export const PAYLOAD_DEADLINE_MS = 30_000
/** Contract 8: the answer text that the agent can read, in characters. */
export const ANSWER_MAX_LENGTH = 300
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
          description: 'Signs every request. Absent keeps what is stored; null means none.',
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
      Type.Object(
        {
          session_id: Uuid({ description: 'The session that the runner holds.' }),
          epoch: Type.Integer({
            minimum: 0,
            description: 'The epoch of its lease; sent only while it is the current one.',
          }),
        },
        { ...closed, title: 'LeaseIn', description: "The runner's lease of the session." },
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
