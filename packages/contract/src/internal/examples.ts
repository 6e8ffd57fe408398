import { ORGANIZATION_EXAMPLE, PAYLOAD_EXAMPLE, VERIFICATION_EXAMPLE } from '../public/examples.ts'
import type { DeliveryIn, DeliveryOut, DeliveryPage, WebhookSourceIn, WebhookSourceOut } from './resources.ts'

/** Examples of bodies for the OpenAPI document of the internal API; the linter validates each by its schema. */

const { source_id: SOURCE_ID, data: SOURCE } = VERIFICATION_EXAMPLE

export const WEBHOOK_SOURCE_IN_EXAMPLE: WebhookSourceIn = {
  name: 'Order intake',
  description: 'Takes every new order.',
  endpoint_url: SOURCE.target_url,
  signing_secret: SOURCE.signing_secret,
  example_request_body: SOURCE.body_example,
}

export const WEBHOOK_SOURCE_EXAMPLE: WebhookSourceOut = {
  id: SOURCE_ID,
  organization_id: ORGANIZATION_EXAMPLE.id,
  name: 'Order intake',
  description: 'Takes every new order.',
  endpoint_url: SOURCE.target_url,
  has_signing_secret: true,
  example_request_body: SOURCE.body_example,
  approval: 'none',
  paused_at: null,
  created_at: '2026-01-31T09:00:00.000Z',
  updated_at: '2026-01-31T09:00:00.000Z',
  verified_at: '2026-01-31T09:00:00.000Z',
  version: 1,
}

export const PAYLOAD_IN_EXAMPLE: DeliveryIn = {
  organization_id: ORGANIZATION_EXAMPLE.id,
  source_id: SOURCE_ID,
  payload: PAYLOAD_EXAMPLE,
}

export const RESEND_IN_EXAMPLE: DeliveryIn = {
  organization_id: ORGANIZATION_EXAMPLE.id,
  resend_of: '01a1fd4e-f10a-7c3b-8d21-5b9e0f7a6c44',
}

export const DELIVERY_EXAMPLE: DeliveryOut = {
  id: '01a1fd4e-f10a-7c3b-8d21-5b9e0f7a6c44',
  organization_id: ORGANIZATION_EXAMPLE.id,
  source_id: SOURCE_ID,
  kind: 'payload',
  outcome: 'accepted',
  status: 200,
  reason: null,
  mismatches: null,
  duration_ms: 48,
  answer: 'thank you',
  request_body: PAYLOAD_EXAMPLE,
  session_id: null,
  run_id: null,
  request_id: '01a1fd4e-f105-74b4-8d5a-5afed503624a',
  created_at: '2026-02-14T16:30:00.000Z',
  finished_at: '2026-02-14T16:30:00.048Z',
  resend_of: null,
  sent_by: null,
}

export const VERIFICATION_DELIVERY_EXAMPLE: DeliveryOut = {
  ...DELIVERY_EXAMPLE,
  id: '01a1fd4e-f10b-7e55-9a10-3c7d2e8f1b66',
  kind: 'verification',
  status: 204,
  answer: null,
  request_body: { ...VERIFICATION_EXAMPLE, data: { ...SOURCE, signing_secret: '[hidden]' } },
}

export const DELIVERY_PAGE_EXAMPLE: DeliveryPage = {
  data: [DELIVERY_EXAMPLE, VERIFICATION_DELIVERY_EXAMPLE],
  pagination: { next_cursor: null, has_more: false },
}
