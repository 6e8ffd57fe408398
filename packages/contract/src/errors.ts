import { Closed, Optional, type Static } from './schema/objects.ts'
import { OpenEnum, Str } from './schema/values.ts'
import { Type } from './schema/type.ts'

/** The only statuses of an error response of the public and the internal API (contract README, "Errors"). */
export const ERROR_STATUSES = [400, 401, 403, 404, 409, 422, 429, 500, 503] as const
/** Also that of a request to the application at a host that is not its own. */
export type ErrorStatus = (typeof ERROR_STATUSES)[number] | 421

type Api = 'public' | 'internal' | 'app'
const ALL = ['public', 'internal', 'app'] as const
const PUBLIC = ['public'] as const
const PUBLIC_AND_APP = ['public', 'app'] as const
const INTERNAL = ['internal'] as const
const INTERNAL_AND_APP = ['internal', 'app'] as const
const APP = ['app'] as const

/** Every error code with its status, the APIs that answer it, and when they do (contract README, "Errors"). */
const ERRORS = {
  invalid_request: [400, ALL, 'the request is not valid HTTP or cannot be read'],
  invalid_json: [400, ALL, 'the body is not JSON in UTF-8'],
  unsupported_media_type: [400, ALL, 'another content type, charset or encoding'],
  body_too_large: [400, ALL, 'the body exceeds its limit'],
  unauthorized: [401, ALL, 'no valid key or token, or not signed in'],
  sign_in_failed: [401, APP, 'the sign-in failed, regardless of the cause'],
  insufficient_scope: [403, PUBLIC, 'the key lacks the scope'],
  organization_suspended: [403, ALL, 'the organization of the key, or of a payload, is suspended'],
  forbidden_for_role: [403, INTERNAL_AND_APP, 'the role does not allow it'],
  confirmation_required: [403, APP, 'the person must confirm with the password first'],
  cross_site_request: [403, APP, "the request does not come from the application's own page"],
  not_found: [
    404,
    ALL,
    "unknown path, method, workflow, source or organization; another organization's is answered the same",
  ],
  session_closed: [409, PUBLIC_AND_APP, 'the session is closed'],
  workflow_inactive: [409, PUBLIC_AND_APP, 'the workflow is inactive'],
  no_active_api_trigger: [409, PUBLIC_AND_APP, 'no active trigger has the source slug `api`'],
  no_users_with_access: [409, PUBLIC_AND_APP, 'no user has access to the workflow'],
  idempotency_conflict: [409, ALL, 'the Idempotency-Key, or the delivery id, was used for another request'],
  name_taken: [409, INTERNAL_AND_APP, 'another one of the organization has the name'],
  id_taken: [409, INTERNAL_AND_APP, 'the id cannot be used'],
  source_changed: [409, INTERNAL_AND_APP, 'another save of the webhook source or look-up won'],
  lease_lost: [409, INTERNAL, "the lease's epoch is not the current one"],
  approval_required: [409, INTERNAL, 'the payload needs the approval of a person'],
  run_ended: [409, INTERNAL_AND_APP, 'the run has ended: it cannot be cancelled'],
  not_waiting: [409, APP, 'the payload was decided, its approval expired, or its run has ended'],
  changed_meanwhile: [409, APP, 'saved since the edited version was read; `current` has the object as it is now'],
  email_taken: [409, APP, 'another account or user has the email address'],
  last_owner: [409, APP, 'the organization would have no owner'],
  link_not_usable: [409, APP, 'the link was used or revoked, or has expired'],
  manifest_too_large: [409, APP, 'the manifest to export is larger than 10 MiB; use `wf export`'],
  not_resendable: [409, INTERNAL_AND_APP, 'not a payload, its outcome is not known yet, or its source is deleted'],
  workflow_busy: [409, APP, 'a run of the workflow has not ended'],
  quota_exceeded: [409, INTERNAL_AND_APP, 'the organization has as many as it may have'],
  misdirected_request: [421, APP, 'the host is neither that of `APP_URL` nor loopback'],
  validation_error: [422, ALL, 'fields fail validation'],
  verification_failed: [422, INTERNAL_AND_APP, 'the endpoint did not confirm'],
  rate_limited: [429, PUBLIC_AND_APP, 'too many requests; wait `Retry-After` seconds'],
  internal_error: [500, ALL, 'an unexpected error; no internals are disclosed'],
  source_paused: [503, INTERNAL_AND_APP, 'the webhook source is paused; nothing was sent'],
  service_unavailable: [503, ALL, 'a dependency does not answer, or too much is under way; wait `Retry-After` seconds'],
} as const satisfies Record<string, readonly [ErrorStatus, readonly Api[], string]>
type Errors = typeof ERRORS
export type ErrorCode = keyof Errors
type CodeOf<Of extends Api> = { [Code in ErrorCode]: Of extends Errors[Code][1][number] ? Code : never }[ErrorCode]

const ALL_CODES = Object.keys(ERRORS) as ErrorCode[]
function codesOf<Of extends Api>(api: Of): readonly CodeOf<Of>[] {
  const isOf = (code: ErrorCode): code is CodeOf<Of> => ERRORS[code][1].some((each) => each === api)
  return ALL_CODES.filter(isOf)
}

/** The status of each error code. */
export const ERROR_CODES = Object.fromEntries(ALL_CODES.map((code) => [code, ERRORS[code][0]])) as {
  readonly [Code in ErrorCode]: Errors[Code][0]
}
/** When each error code is answered. */
export const ERROR_MEANINGS = Object.fromEntries(ALL_CODES.map((code) => [code, ERRORS[code][2]])) as Readonly<
  Record<ErrorCode, string>
>
export const PUBLIC_ERROR_CODES = codesOf('public')
export const INTERNAL_ERROR_CODES = codesOf('internal')
export const APP_ERROR_CODES = codesOf('app')

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

/** The `error` object of every error response (contract README, "Errors"). */
export const ErrorBody = Closed('ErrorBody', 'What went wrong.', {
  code: ErrorCodeOf(PUBLIC_ERROR_CODES),
  message: Str('Human-readable; may change, so do not match on it.'),
  request_id: Str('Identifier of the request, for support.'),
  details: Optional(
    Type.Unsafe<FieldError[] | null>({
      type: ['array', 'null'],
      items: FieldError,
      description: 'Present only on 422: the fields that failed validation.',
    }),
  ),
})

/** The body of every error response, regardless of its status (contract README, "Errors"). */
export const ErrorResponse = Closed('ErrorResponse', 'The body of every error.', { error: ErrorBody })
export type ErrorResponse = Static<typeof ErrorResponse>

/** The messages of refused starts, in both APIs (contract README, "Starts and sessions"). */
export const START_CONFLICTS = {
  workflow_inactive: 'The workflow is inactive. Activate it, then start it again.',
  no_active_api_trigger:
    'The workflow has no active trigger whose source is "api". Add one, or activate the one it has.',
  no_users_with_access: 'No user has access to the workflow. Give access to at least one.',
  session_closed: 'The session is closed. Leave session_id out to start in a new one.',
} as const satisfies Partial<Record<ErrorCode, string>>
