import * as openApi from '../schema/build-openapi.ts'
import { INTERNAL_OPERATIONS, type InternalOperation } from './operations.ts'
import { InternalErrorResponse } from './resources.ts'

/**
 * Describes the internal API as an OpenAPI document, from the schemas that validate its requests (contract README,
 * "Internal API"). `serverUrl` is what the paths are appended to.
 */
export function describeInternalApi(serverUrl = 'http://127.0.0.1:8081'): Record<string, unknown> {
  return openApi.buildOpenApi({
    serverUrl,
    title: 'Workflow Automation Service: internal API',
    tags: [
      { name: 'Webhook sources', description: 'Save, verify and read the destinations of payloads.' },
      { name: 'Look-ups', description: 'Save and call what agents with a model may read.' },
      { name: 'Deliveries', description: 'Send payloads, and read the log of what was sent.' },
    ],
    credential: {
      bearer: {
        type: 'http',
        scheme: 'bearer',
        description: 'A token of the setting INTERNAL_API_TOKEN of the dispatcher. Of several, each is accepted.',
      },
    },
    description: DESCRIPTION,
    operations: Object.values<InternalOperation>(INTERNAL_OPERATIONS).map(toDescribed),
    error: InternalErrorResponse,
    errors: ERRORS,
    responseHeaders: RESPONSE_HEADERS,
  })
}

const DESCRIPTION = `
The API of the dispatcher, for applications that configure webhook sources: the application, the CLI and the runner use it to save
webhook sources, read delivery logs and send payloads. It is not for customers and must not be reachable from the internet.

**Tokens.** Send \`Authorization: Bearer …\` with a token of the dispatcher's setting \`INTERNAL_API_TOKEN\`. It gives access to all
organizations; the caller decides what its user may do.

**Identifiers** of new webhook sources and deliveries are chosen by the caller, as UUIDs. A request that is repeated with the same
identifier does nothing twice.

**Errors** have the shape of the public API. Match on \`error.code\`. A 422 \`validation_error\` lists every failing field in
\`error.details\`; \`verification_failed\` says in \`error.reason\` why the endpoint did not confirm. After a 503 nothing was sent: try
again with the same identifier.
`.trim()

const ERRORS: readonly openApi.DescribedError[] = [
  { status: 400, description: 'The request cannot be read: not JSON, too large, another content type.' },
  { status: 401, description: 'No token, or an unknown one: `unauthorized`.' },
  { status: 403, description: '`organization_suspended` for a payload: nothing was sent.' },
  {
    status: 404,
    description: 'The organization, the source, the delivery to send again or the route does not exist: `not_found`.',
  },
  {
    status: 409,
    description:
      '`name_taken`, `id_taken` or `source_changed` for a save; `lease_lost`, `approval_required`, `idempotency_conflict` or `not_resendable` for a delivery.',
  },
  {
    status: 422,
    description:
      '`validation_error` with one entry in `details` for each failing field; `verification_failed` with `reason` if the endpoint did not confirm.',
  },
  { status: 500, description: 'An unexpected error: `internal_error`.' },
  {
    status: 503,
    description:
      'The database does not answer, or too many requests are under way: `service_unavailable`. Nothing was sent; try again.',
  },
]

const RESPONSE_HEADERS: Record<string, openApi.DescribedHeader> = {
  'X-Request-Id': {
    description: 'Identifier of the request: the caller’s if it is 1 to 128 plain characters, otherwise a new one.',
    schema: { type: 'string', examples: ['01a1fd4e-f105-74b4-8d5a-5afed503624a'] },
  },
  'Retry-After': {
    description: 'Seconds to wait before trying again.',
    schema: { type: 'integer', minimum: 1, examples: [1] },
    statuses: [503],
  },
}

const TAGS = [
  ['deliveries', 'Deliveries'],
  ['lookups', 'Look-ups'],
] as const

function toDescribed(operation: InternalOperation): openApi.DescribedOperation {
  const tag = TAGS.find(([segment]) => operation.path.includes(segment))?.[1] ?? 'Webhook sources'
  return { ...operation, tag }
}
