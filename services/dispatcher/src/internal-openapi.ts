import {
  buildOpenApi,
  INTERNAL_OPERATIONS,
  type InternalOperation,
  InternalErrorResponse,
} from '@workflow-service/contract'

/** The internal API's OpenAPI document, from the schemas that check its requests. `openapi.json` is a copy of it. */
export function describeInternalApi(): Record<string, unknown> {
  return buildOpenApi({
    title: 'Workflow Automation Service: internal API',
    version: '1.0.0',
    description:
      'How the application, the CLI and the runner save webhook sources, read their logs and send payloads. Not for customers.',
    bearer: 'A token of INTERNAL_API_TOKEN.',
    operations: Object.values<InternalOperation>(INTERNAL_OPERATIONS),
    error: InternalErrorResponse,
    errors: [
      { status: 400, description: 'The request cannot be read: no JSON, too large, another content type.' },
      { status: 401, description: 'No token, or none that is known.' },
      { status: 404, description: 'The organization, the source or the route does not exist.' },
      {
        status: 409,
        description:
          '`name_taken`, `id_taken` or `source_changed` for a save; `lease_lost` or `idempotency_conflict` for a delivery.',
      },
      {
        status: 422,
        description:
          '`validation_error` with `details`, one for each failing field; `verification_failed` with `reason` when the endpoint did not confirm.',
      },
      { status: 500, description: 'Something unforeseen.' },
      { status: 503, description: 'The database does not answer, or too much is under way; try again.' },
    ],
  })
}
