import { type Static, Type } from 'typebox'
import { CLOSED } from './schema/types.ts'

/** One field that failed validation (contract README, "Errors"). */
export const FieldError = Type.Object(
  {
    field: Type.String({
      description: 'Name of the failing field, nested parts joined with a dot.',
      examples: ['context'],
    }),
    code: Type.String({ description: 'Short code; match on it.', examples: ['string_too_short'] }),
    message: Type.String({
      description: 'Human-readable; may change.',
      examples: ['must have at least 1 character'],
    }),
  },
  { ...CLOSED, title: 'FieldError', description: 'One field that failed validation.' },
)
export type FieldError = Static<typeof FieldError>

/** The `error` object of every error answer (contract README, "Errors"). */
export const ErrorBody = Type.Object(
  {
    code: Type.String({ description: 'Stable code; match on it.', examples: ['not_found', 'rate_limited'] }),
    message: Type.String({ description: 'Human-readable; may change, so do not match on it.' }),
    request_id: Type.String({ description: 'Identifier of the request, for support.' }),
    details: Type.Optional(
      Type.Unsafe<FieldError[] | null>({
        type: ['array', 'null'],
        items: FieldError,
        description: 'Present only on 422: the fields that failed validation.',
      }),
    ),
  },
  { ...CLOSED, title: 'ErrorBody', description: 'What went wrong.' },
)

/** The body of every error answer, regardless of its status (contract README, "Errors"). */
export const ErrorResponse = Type.Object(
  { error: ErrorBody },
  { ...CLOSED, title: 'ErrorResponse', description: 'The body of every error.' },
)
export type ErrorResponse = Static<typeof ErrorResponse>

/** The only statuses of an error answer (contract README, "Errors"). */
export const ERROR_STATUSES = [400, 401, 403, 404, 409, 422, 429, 500, 503] as const
export type ErrorStatus = (typeof ERROR_STATUSES)[number]

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
  validation_error: 422,
  verification_failed: 422,
  rate_limited: 429,
  internal_error: 500,
  service_unavailable: 503,
} as const satisfies Record<string, ErrorStatus>
export type ErrorCode = keyof typeof ERROR_CODES

/** Every code of a field error: Pydantic v2's where it has one (contract README, "Errors"). */
export const FIELD_CODES = [
  'missing',
  'extra_forbidden',
  'model_attributes_type',
  'dict_type',
  'list_type',
  'string_type',
  'string_too_short',
  'string_too_long',
  'string_unicode',
  'string_pattern_mismatch',
  'uuid_type',
  'uuid_parsing',
  'datetime_parsing',
  'int_type',
  'int_parsing',
  'float_type',
  'bool_type',
  'greater_than_equal',
  'less_than_equal',
  'too_short',
  'too_long',
  'enum',
  'not_found',
  'invalid_cursor',
  'url_parsing',
  'url_scheme',
  'url_not_public',
  'too_large',
  'too_deep',
  'too_many_fields',
  'inexact_number',
  'finite_number',
  'reserved_value',
  'reserved_name',
  'value_type',
  'value_error',
] as const
export type FieldCode = (typeof FIELD_CODES)[number]
