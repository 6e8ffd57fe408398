import { VERIFICATION_TYPE } from '../schema/check-json-value.ts'
import { RunEvent } from '../notices.ts'
import type { DescribedOperation } from '../schema/build-openapi.ts'
import { Closed, JsonObject, Nullable, Optional, Parameters, type Static } from '../schema/objects.ts'
import { Str } from '../schema/values.ts'
import { EVENT_EXAMPLE, PAYLOAD_EXAMPLE, VERIFICATION_EXAMPLE } from './examples.ts'
import { Type } from '../schema/type.ts'

/** The body of a verification request (contract README, "Verification request"). */
export const WebhookVerification = Closed('WebhookVerification', 'The body of a verification request.', {
  type: Type.Literal(VERIFICATION_TYPE, { description: 'Distinguishes a verification request from a payload.' }),
  organization_id: Str('Organization identifier.'),
  source_id: Str('Webhook source identifier; constant for the life of the source.'),
  data: Closed('WebhookVerificationData', 'The webhook source as entered.', {
    target_url: Str('The URL exactly as entered.'),
    signing_secret: Nullable(Str('The secret as entered; null if there is none. No other request carries the secret.')),
    body_example: JsonObject('The example request body as entered.'),
  }),
})
export type WebhookVerification = Static<typeof WebhookVerification>

/** The body of a payload request (contract README, "Payload request"). */
const WebhookPayload = Type.Unsafe<Record<string, unknown>>({
  type: 'object',
  additionalProperties: true,
  title: 'WebhookPayload',
  description:
    "An object with the structure of the source's example request body: the same field names, nesting and value types.",
})

/** Headers of the requests to endpoints (contract README, "Service token"). */
const WebhookHeaders = Parameters({
  'X-Service-Token': Optional(
    Str(
      'Base64 of `<timestamp>.<signature>`: the Unix time in seconds, and the HMAC-SHA256 of its digits keyed with the signing secret, as 64 lowercase hex digits. Sent if and only if the source has a signing secret.',
      {
        examples: [
          'MTc1MDAwMDAwMC5lODlkNDUxNTNiYmY5ZGRkNTJlZjYwMTI2NDgyYTZkZDA1YjAwNjNhMmE0YWM3NTE5MmNjNDU2MzVhZGM3OWIy',
        ],
      },
    ),
  ),
  'X-Delivery-Id': Str('Identifies the payload: the same when a person sends it again.', {
    examples: ['01a1fd4e-f10a-7c3b-8d21-5b9e0f7a6c44'],
  }),
  'X-Delivery-Attempt': Str('How often the payload was sent with this request, from 1.', { examples: ['1'] }),
  'X-Service-Timestamp': Str('The Unix time in seconds at which the request was created.', {
    examples: ['1750000000'],
  }),
  'X-Service-Signature': Optional(
    Str(
      '`v1,` and the Base64 of the HMAC-SHA256 of `<X-Delivery-Id>.<X-Service-Timestamp>.<body>` keyed with the signing secret, as in Standard Webhooks. Optional to check; sent if and only if the source has a signing secret.',
      { examples: ['v1,6tRcbKzjNZKoPCAT1QF3FOrYzVCk3ZNJiKKDvT2CYBs='] },
    ),
  ),
  'X-Request-Id': Str('Identifier of the request that led to this one, for support.', {
    examples: ['01a1fd4e-f105-74b4-8d5a-5afed503624a'],
  }),
  traceparent: Optional(
    Str('The trace of the start, if it has one (W3C Trace Context).', {
      examples: ['00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'],
    }),
  ),
  tracestate: Optional(Str('What tracing systems add to it.', { examples: ['vendor=1'] })),
})

const webhook = (
  accepted: string,
  otherwise: string,
  described: Pick<DescribedOperation, 'path' | 'summary' | 'description' | 'body' | 'bodyExamples'>,
): DescribedOperation => ({
  ...described,
  id: `${described.path}Webhook`,
  method: 'post',
  tag: 'Webhooks',
  headers: WebhookHeaders,
  isOpen: true,
  errorCodes: [],
  successes: [
    { status: '2XX', description: accepted },
    { status: 401, description: 'The check of `X-Service-Token` failed. Answer so before anything else.' },
    { status: 'default', description: otherwise },
  ],
})

/** The requests that the service sends to a customer's endpoint. */
export const WEBHOOKS: readonly DescribedOperation[] = [
  webhook(
    'The endpoint confirms: the webhook source is saved.',
    'Any other status, a redirect, or no answer in time: nothing is saved.',
    {
      path: 'verification',
      summary: 'Verification request',
      description: `Sent once on each save or edit of a webhook source, and on each test. Answer any 2xx status within 10 seconds; otherwise nothing is saved.

Check \`type\` before anything else, and do not process the request as workflow data.`,
      body: WebhookVerification,
      bodyExamples: { verification: { summary: 'A source with a secret', value: VERIFICATION_EXAMPLE } },
    },
  ),
  webhook('The payload is accepted.', 'Any other status, redirects included: the payload is rejected.', {
    path: 'payload',
    summary: 'Payload request',
    description: `Sent when an agent posts data to the webhook source. Any 2xx status within 30 seconds means accepted. If its body is one line of at most 300 characters, the agent reads it.

The service never resends a payload by itself. After another status the agent learns that the payload was not accepted; it may correct it and send again.`,
    body: WebhookPayload,
    bodyExamples: { order: { summary: 'For an example with these three fields', value: PAYLOAD_EXAMPLE } },
  }),
  webhook('The event is accepted.', 'Any other status: the event is tried again until it is an hour old.', {
    path: 'event',
    summary: 'Event of a run',
    description: `Sent to the webhook of the organization, which an admin sets on the page of the organization with the events to get. One for each run that failed or was cancelled, and for each payload that waits for approval. Answer within 10 seconds.

An event may come more than once, with the same \`X-Delivery-Id\`, and events in any order. The webhook gets notices for people, too: ignore types that you do not know.`,
    body: RunEvent,
    bodyExamples: { failed: { summary: 'A run failed', value: EVENT_EXAMPLE } },
  }),
]
