import { type Static, Type } from 'typebox'
import { closed } from './schema.ts'

/** Contract 7, FieldError. */
export const FieldError = Type.Object(
  {
    field: Type.String({
      description: 'Name of the failing field, nested parts joined with a dot.',
      examples: ['context'],
    }),
    code: Type.String({ description: 'Short code; match on it.', examples: ['string_too_short'] }),
    message: Type.String({ description: 'For people; may change.', examples: ['must have at least 1 character'] }),
  },
  { ...closed, title: 'FieldError', description: 'One field that failed validation.' },
)
export type FieldError = Static<typeof FieldError>

/** Contract 7, ErrorBody. */
export const ErrorBody = Type.Object(
  {
    code: Type.String({ description: 'Stable code; match on it.', examples: ['not_found', 'rate_limited'] }),
    message: Type.String({ description: 'For people; may change, so do not match on it.' }),
    request_id: Type.String({ description: 'Identifier of the request, for support.' }),
    details: Type.Optional(
      Type.Unsafe<FieldError[] | null>({
        type: ['array', 'null'],
        items: FieldError,
        description: 'Present only on 422: the fields that failed validation.',
      }),
    ),
  },
  { ...closed, title: 'ErrorBody', description: 'What went wrong.' },
)

/** Contract 7, ErrorResponse: the body of every error, whatever its status. */
export const ErrorResponse = Type.Object(
  { error: ErrorBody },
  { ...closed, title: 'ErrorResponse', description: 'The body of every error.' },
)
export type ErrorResponse = Static<typeof ErrorResponse>

/** Contract 7: the only statuses of an error. */
export const ERROR_STATUSES = [400, 401, 403, 404, 409, 422, 429, 500, 503] as const
export type ErrorStatus = (typeof ERROR_STATUSES)[number]

/** Every error code with its one status: design section 5 for the public API, section 7 for the internal one. */
export const ERROR_CODES = {
  invalid_request: 400,
  invalid_json: 400,
  unsupported_media_type: 400,
  body_too_large: 400,
  unauthorized: 401,
  insufficient_scope: 403,
  organization_suspended: 403,
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
  validation_error: 422,
  verification_failed: 422,
  rate_limited: 429,
  internal_error: 500,
  service_unavailable: 503,
} as const satisfies Record<string, ErrorStatus>
export type ErrorCode = keyof typeof ERROR_CODES
