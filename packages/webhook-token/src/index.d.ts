/**
 * Makes and checks the `X-Service-Token` header with which the Workflow Automation Service signs the requests that it
 * sends to your endpoint. It does not read the request's body: the signature covers the time alone.
 */

/** The name of the header, as the service writes it. */
export declare const serviceTokenHeader = 'X-Service-Token'

/**
 * The value of the header: the Base64 of `<Unix seconds>.<HMAC-SHA256 of these digits, as 64 lowercase hex digits>`.
 * The secret is used as text (its UTF-8 bytes), also where it looks like hex or Base64.
 * Throws a `TypeError` when the secret is empty.
 */
export declare function createServiceToken(secret: string, options?: { now?: () => number }): string

/**
 * Checks the value of the header. `secret` may be a list while a secret is being changed: any of them will do.
 * Never throws for what was received; throws a `TypeError` when a secret is empty.
 */
export declare function checkServiceToken(
  headerValue: string | readonly string[] | null | undefined,
  secret: string | readonly string[],
  options?: ServiceTokenOptions,
): ServiceTokenCheck

/**
 * A middleware for Express, Connect or a plain `node:http` server: calls `next()` for an authentic request, answers
 * 401 with the reason otherwise. Throws a `TypeError` at once when the secret is empty.
 */
export declare function verifyServiceToken(
  secret: string | readonly string[],
  options?: ServiceTokenOptions,
): ServiceTokenMiddleware

export type ServiceTokenOptions = {
  /** The receiver's clock, in milliseconds since 1970. Default `Date.now`. */
  now?: () => number
  /** How far the token's time may be from the receiver's, in either direction. Default 300. */
  toleranceSeconds?: number
}

/** `timestamp` is the time at which the request was created, in Unix seconds. */
export type ServiceTokenCheck = { ok: true; timestamp: number } | { ok: false; reason: ServiceTokenFault }

export type ServiceTokenFault = 'missing' | 'repeated' | 'malformed' | 'too_old' | 'too_new' | 'wrong_signature'

export type ServiceTokenMiddleware = (
  request: { headers: { [name: string]: string | string[] | undefined } },
  response: { statusCode: number; setHeader(name: string, value: string): unknown; end(body: string): unknown },
  next: () => void,
) => void
