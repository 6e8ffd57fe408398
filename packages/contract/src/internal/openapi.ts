import * as openApi from '../schema/build-openapi.ts'
import { INTERNAL_ERROR_CODES } from '../errors.ts'
import { RESPONSE_HEADERS } from '../public/openapi.ts'
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
    errorCodes: INTERNAL_ERROR_CODES,
    responseHeaders: {
      'X-Request-Id': RESPONSE_HEADERS['X-Request-Id'],
      'Retry-After': RESPONSE_HEADERS['Retry-After'],
    },
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

function toDescribed(operation: InternalOperation): openApi.DescribedOperation {
  const [, , deliveries = '', , tag = deliveries] = operation.path.split('/')
  return { ...operation, tag }
}
