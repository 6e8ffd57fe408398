/**
 * Creates and checks the `X-Service-Token` header, by which the Workflow Automation Service signs its requests to your
 * endpoint, and reads their bodies. The token's signature covers the time only. `X-Service-Signature` covers the
 * delivery's id and the body, too.
 */

export { parseEvent, parseWebhook } from './parse-webhook.js'
export type { PayloadOf, PayloadProblem, RunEvent, Webhook, WebhookVerification } from './parse-webhook.js'

/** The name of the header, as the service sends it. */
export declare const SERVICE_TOKEN_HEADER = 'X-Service-Token'

/**
 * Creates a value of the header for the current time: the Base64 of `<Unix seconds>.<HMAC-SHA256 of these digits, as 64
 * lowercase hex digits>`. The key is the secret's UTF-8 bytes, even if it looks like hex or Base64.
 * Rejects with a `TypeError` if the secret is missing or empty.
 */
export declare function createServiceToken(
  secret: string | undefined,
  options?: { now?: () => number },
): Promise<string>

/**
 * Checks a value of the header. While you change the secret, pass a list: any secret of it is accepted.
 * Never rejects because of the received value; rejects with a `TypeError` if a secret is missing or empty,
 * or the tolerance is no number from 0.
 */
export declare function checkServiceToken(
  headerValue: string | readonly string[] | null | undefined,
  secret: string | readonly string[] | undefined,
  options?: ServiceTokenOptions,
): Promise<ServiceTokenCheck>

/** The name of the header with the signature of a request. */
export declare const SERVICE_SIGNATURE_HEADER = 'X-Service-Signature'
/** The name of the header with the time of a request, in Unix seconds. */
export declare const SERVICE_TIMESTAMP_HEADER = 'X-Service-Timestamp'
/** The name of the header with the id of a delivery: the same when a person sends its payload again. */
export declare const DELIVERY_ID_HEADER = 'X-Delivery-Id'
/** The name of the header with the number of a request for its delivery id, from 1. */
export declare const DELIVERY_ATTEMPT_HEADER = 'X-Delivery-Attempt'

/** What a signature covers. `timestamp` is in Unix seconds; `body` the text or bytes as sent. */
export interface SignedContent {
  deliveryId: string
  timestamp: number | string
  body: string | Uint8Array
}

/**
 * Creates a value of `X-Service-Signature`: `v1,` and the Base64 of the HMAC-SHA256 of
 * `<delivery id>.<timestamp>.<body>` (Standard Webhooks 1.0.0). The key is the secret's UTF-8 bytes. Rejects with a
 * `TypeError` if the secret is missing or empty.
 */
export declare function createServiceSignature(secret: string | undefined, content: SignedContent): Promise<string>

/**
 * Creates all headers by which the service identifies and signs a request, for the current time: to test your endpoint.
 * `secret` null: those of a webhook source without a secret. Rejects with a `TypeError` if the secret is missing or
 * empty.
 */
export declare function createServiceHeaders(
  secret: string | null | undefined,
  request: { deliveryId: string; attempt?: number; body: string | Uint8Array },
  options?: { now?: () => number },
): Promise<Record<string, string>>

/** The headers of a request: of Node, with names in lower case, or a `Headers` object. */
export type RequestHeaders =
  | { get(name: string): string | null | undefined }
  | { get?: undefined; [name: string]: string | readonly string[] | undefined }

/**
 * Checks the signature of a request over its delivery id, time and body. Give the body as received, before it is
 * parsed. While you change the secret, pass a list. Never rejects because of the request; rejects with a `TypeError` if
 * a secret is missing or empty, or the tolerance is no number from 0.
 */
export declare function checkServiceSignature(
  headers: RequestHeaders,
  body: string | Uint8Array | ArrayBuffer,
  secret: string | readonly string[] | undefined,
  options?: ServiceTokenOptions,
): Promise<ServiceSignatureCheck>

/** As `ServiceTokenCheck`, with the id of the delivery. */
export type ServiceSignatureCheck =
  | { ok: true; timestamp: number; deliveryId: string }
  | { ok: false; reason: ServiceTokenRejection }

/**
 * Creates a middleware for Express, Connect or a plain `node:http` server. It calls `next()` for an authentic request
 * and otherwise answers 401 with the reason. Throws a `TypeError` at once if the secret is missing or empty, or the
 * tolerance is no number from 0, so that a missing setting stops your server before it listens.
 */
export declare function verifyServiceToken(
  secret: string | readonly string[] | undefined,
  options?: ServiceTokenOptions,
): ServiceTokenMiddleware

export interface ServiceTokenOptions {
  /** The receiver's clock, in milliseconds since 1970. Default `Date.now`. */
  now?: () => number
  /** Allowed difference between the token's time and the receiver's clock, in either direction. Default 300. */
  toleranceSeconds?: number
}

/** `timestamp` is the time at which the request was created, in Unix seconds. */
export type ServiceTokenCheck = { ok: true; timestamp: number } | { ok: false; reason: ServiceTokenRejection }

/** Why a value was rejected. */
export type ServiceTokenRejection = 'missing' | 'repeated' | 'malformed' | 'too_old' | 'too_new' | 'wrong_signature'

export type ServiceTokenMiddleware = (
  request: { headers: { [name: string]: string | string[] | undefined } },
  response: { statusCode: number; setHeader(name: string, value: string): unknown; end(body: string): unknown },
  next: () => void,
) => Promise<void>

/**
 * Creates a memory of delivery ids for one process that may forget them when it ends: for development, and where a
 * payload that is processed twice does no harm. Keeps the latest `maxIds`, by default 10,000 (about 1 MiB).
 */
export declare function createDeliveryMemory(options?: { maxIds?: number }): DeliveryMemory

/** The delivery ids that were received. A store in Redis or PostgreSQL has the same methods: see the README. */
export interface DeliveryMemory {
  /** Whether the id was given before. Remembers it: of two requests at the same time, one gets false. */
  alreadySeen: (id: string) => boolean
  /** Forgets the id of a payload that could not be processed, so that it can be sent again. */
  forget: (id: string) => void
}
