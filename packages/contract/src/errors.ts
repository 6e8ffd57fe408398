import { type Static, Type } from 'typebox'
import { Closed, OpenEnum, Str } from './schema/types.ts'

/** The only statuses of an error answer of the public and the internal API (contract README, "Errors"). */
export const ERROR_STATUSES = [400, 401, 403, 404, 409, 422, 429, 500, 503] as const
/** Also that of a request to the application at a host that is not its own. */
export type ErrorStatus = (typeof ERROR_STATUSES)[number] | 421

/** Every error code of the three APIs with its status (contract README, "Errors"). */
export const ERROR_CODES = {
  invalid_request: 400,
  invalid_json: 400,
  unsupported_media_type: 400,
  body_too_large: 400,
  unauthorized: 401,
  sign_in_failed: 401,
  insufficient_scope: 403,
  organization_suspended: 403,
  forbidden_for_role: 403,
  confirmation_required: 403,
  cross_site_request: 403,
  not_found: 404,
  session_closed: 409,
  workflow_inactive: 409,
  no_active_api_trigger: 409,
  no_users_with_access: 409,
  idempotency_conflict: 409,
  name_taken: 409,
  id_taken: 409,
  source_changed: 409,
  lease_lost: 409,
  approval_required: 409,
  not_waiting: 409,
  changed_meanwhile: 409,
  email_taken: 409,
  last_owner: 409,
  link_not_usable: 409,
  manifest_too_large: 409,
  not_resendable: 409,
  workflow_busy: 409,
  quota_exceeded: 409,
  misdirected_request: 421,
  validation_error: 422,
  verification_failed: 422,
  rate_limited: 429,
  internal_error: 500,
  service_unavailable: 503,
} as const satisfies Record<string, ErrorStatus>
export type ErrorCode = keyof typeof ERROR_CODES

/** When each error code is answered (contract README, "Errors"). */
export const ERROR_MEANINGS: Readonly<Record<ErrorCode, string>> = {
  invalid_request: 'the request is not valid HTTP or cannot be read',
  invalid_json: 'the body is not JSON in UTF-8',
  unsupported_media_type: 'another content type, charset or encoding',
  body_too_large: 'the body exceeds its limit',
  unauthorized: 'no valid key or token, or not signed in',
  sign_in_failed: 'the sign-in failed, regardless of the cause',
  insufficient_scope: 'the key lacks the scope',
  organization_suspended: 'the organization of the key, or of a payload, is suspended',
  forbidden_for_role: 'the role does not allow it',
  confirmation_required: 'the person must confirm with the password first',
  cross_site_request: "the request does not come from the application's own page",
  not_found: "unknown path, method, workflow, source or organization; another organization's is answered the same",
  session_closed: 'the session is closed',
  workflow_inactive: 'the workflow is inactive',
  no_active_api_trigger: 'no active trigger has the source slug `api`',
  no_users_with_access: 'no user has access to the workflow',
  idempotency_conflict: 'the Idempotency-Key, or the delivery id, was used for another request',
  name_taken: 'another webhook source has the name',
  id_taken: 'the id of the webhook source cannot be used',
  source_changed: 'another save of the webhook source won',
  lease_lost: "the lease's epoch is not the current one",
  approval_required: 'the payload needs the approval of a person',
  not_waiting: 'the payload was decided, or its approval expired',
  changed_meanwhile: 'saved since the edited version was read; `current` has the object as it is now',
  email_taken: 'another account or user has the email address',
  last_owner: 'the organization would have no owner',
  link_not_usable: 'the link was used or revoked, or has expired',
  manifest_too_large: 'the manifest to export is larger than 10 MiB; use `wf export`',
  not_resendable: 'not a payload, its outcome is not known yet, or its source is deleted',
  workflow_busy: 'a run of the workflow has not ended',
  quota_exceeded: 'the organization has as many as it may have; the message names the setting',
  misdirected_request: 'the host is neither that of `APP_URL` nor loopback',
  validation_error: 'fields fail validation',
  verification_failed: 'the endpoint did not confirm',
  rate_limited: 'too many requests; wait `Retry-After` seconds',
  internal_error: 'an unexpected error; no internals are disclosed',
  service_unavailable: 'a dependency does not answer, or too much is under way; wait `Retry-After` seconds',
}

/** The error codes of the public API. */
export const PUBLIC_ERROR_CODES = [
  'invalid_request',
  'invalid_json',
  'unsupported_media_type',
  'body_too_large',
  'unauthorized',
  'insufficient_scope',
  'organization_suspended',
  'not_found',
  'session_closed',
  'workflow_inactive',
  'no_active_api_trigger',
  'no_users_with_access',
  'idempotency_conflict',
  'validation_error',
  'rate_limited',
  'internal_error',
  'service_unavailable',
] as const satisfies ErrorCode[]

/** The error codes of the internal API. */
export const INTERNAL_ERROR_CODES = [
  'invalid_request',
  'invalid_json',
  'unsupported_media_type',
  'body_too_large',
  'unauthorized',
  'organization_suspended',
  'not_found',
  'idempotency_conflict',
  'name_taken',
  'id_taken',
  'source_changed',
  'lease_lost',
  'approval_required',
  'not_resendable',
  'validation_error',
  'verification_failed',
  'internal_error',
  'service_unavailable',
] as const satisfies ErrorCode[]

/** When each field code is answered: Pydantic v2's codes where it has one (contract README, "Errors"). */
export const FIELD_MEANINGS = {
  missing: 'a required field is absent',
  extra_forbidden: 'an unknown field',
  model_attributes_type: 'JSON, but not an object',
  dict_type: 'a free-form field that is not an object',
  list_type: 'not a list',
  string_type: 'not a string, or a query parameter that is repeated',
  string_too_short: 'too few characters',
  string_too_long: 'too many characters',
  string_unicode: 'NUL or a lone surrogate',
  string_pattern_mismatch: 'does not match the pattern',
  uuid_type: 'not a string',
  uuid_parsing: 'not a UUID',
  datetime_parsing: 'not a date-time',
  int_type: 'not an integer',
  int_parsing: 'not decimal digits, or a repeated number in the query',
  float_type: 'not a number',
  bool_type: 'not a boolean',
  greater_than_equal: 'too small',
  less_than_equal: 'too large',
  too_short: 'too few items',
  too_long: 'too many items',
  enum: 'not one of the listed values',
  not_found: '`session_id` is not a session of the organization',
  invalid_cursor: 'not a cursor of this list',
  url_parsing: 'not a valid URL',
  url_scheme: 'neither `https` nor `http`',
  url_not_public: 'the host is not public',
  too_large: 'more bytes or values than allowed',
  too_deep: 'nested deeper than allowed',
  too_many_fields: 'more named fields than allowed',
  inexact_number: 'a number that JavaScript cannot represent exactly',
  finite_number: 'a number that JSON cannot represent',
  reserved_value: 'the `type` of verification requests',
  reserved_name: 'a field named `__proto__`',
  value_type: 'none of several allowed types',
  value_error: 'any other violation',
} as const
export type FieldCode = keyof typeof FIELD_MEANINGS

/** Makes the schema of `error.code` with the codes of one API. */
export function ErrorCodeOf(codes: readonly ErrorCode[]) {
  return OpenEnum(
    Object.fromEntries(codes.map((code) => [code, ERROR_MEANINGS[code]])),
    'Stable code; match on it. Codes may be added: treat an unknown one by its status.',
    { examples: ['not_found'] },
  )
}

/** One field that failed validation (contract README, "Errors"). */
export const FieldError = Closed('FieldError', 'One field that failed validation.', {
  field: Str('Name of the failing field, nested parts joined with a dot.', { examples: ['context'] }),
  code: OpenEnum(FIELD_MEANINGS, 'Short code; match on it. Codes may be added.', { examples: ['string_too_short'] }),
  message: Str('Human-readable; may change.', { examples: ['must have at least 1 character'] }),
})
export type FieldError = Static<typeof FieldError>

/** The `error` object of every error answer (contract README, "Errors"). */
export const ErrorBody = Closed('ErrorBody', 'What went wrong.', {
  code: ErrorCodeOf(PUBLIC_ERROR_CODES),
  message: Str('Human-readable; may change, so do not match on it.'),
  request_id: Str('Identifier of the request, for support.'),
  details: Type.Optional(
    Type.Unsafe<FieldError[] | null>({
      type: ['array', 'null'],
      items: FieldError,
      description: 'Present only on 422: the fields that failed validation.',
    }),
  ),
})

/** The body of every error answer, regardless of its status (contract README, "Errors"). */
export const ErrorResponse = Closed('ErrorResponse', 'The body of every error.', { error: ErrorBody })
export type ErrorResponse = Static<typeof ErrorResponse>
