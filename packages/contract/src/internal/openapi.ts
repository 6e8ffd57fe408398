import { buildOpenApi } from '../schema/build-openapi.ts'
import { INTERNAL_OPERATIONS, type InternalOperation } from './operations.ts'
import { InternalErrorResponse } from './resources.ts'

/** Describes the internal API as an OpenAPI document, from the schemas that validate its requests (contract README, "Internal API"). */
export function describeInternalApi(): Record<string, unknown> {
  return buildOpenApi({
    title: 'Workflow Automation Service: internal API',
    version: '1.0.0',
    description:
      'The application, the CLI and the runner use it to save webhook sources, read delivery logs and send payloads. Not for customers.',
    credential: { kind: 'bearer', description: 'A token of INTERNAL_API_TOKEN.' },
    operations: Object.values<InternalOperation>(INTERNAL_OPERATIONS),
    error: InternalErrorResponse,
    errors: [
      { status: 400, description: 'The request cannot be read: not JSON, too large, another content type.' },
      { status: 401, description: 'No token, or an unknown one.' },
      { status: 403, description: '`organization_suspended` for a payload: nothing was sent.' },
      {
        status: 404,
        description: 'The organization, the source, the delivery to send again or the route does not exist.',
      },
      {
        status: 409,
        description:
          '`name_taken`, `id_taken` or `source_changed` for a save; `lease_lost`, `idempotency_conflict` or `not_resendable` for a delivery.',
      },
      {
        status: 422,
        description:
          '`validation_error` with one entry in `details` for each failing field; `verification_failed` with `reason` if the endpoint did not confirm.',
      },
      { status: 500, description: 'An unexpected error.' },
      { status: 503, description: 'The database does not answer, or too many requests are under way; try again.' },
    ],
  })
}
