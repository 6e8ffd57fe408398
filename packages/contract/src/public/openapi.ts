import { ERROR_CODES, ErrorResponse, PUBLIC_ERROR_CODES } from '../errors.ts'
import {
  errorExample,
  ORGANIZATION_EXAMPLE,
  START_CONFIRMATION_EXAMPLE,
  START_EXAMPLE,
  START_IN_SESSION_EXAMPLE,
  WORKFLOW_EXAMPLE,
  WORKFLOW_PAGE_EXAMPLE,
} from './examples.ts'
import * as openApi from '../schema/build-openapi.ts'
import { PUBLIC_RUN_EXAMPLE, PUBLIC_SESSION_EXAMPLE } from './runs.ts'
import { errorCodesOf, type Operation, type OperationId, OPERATIONS } from './operations.ts'
import { WEBHOOKS } from './webhooks.ts'

/**
 * Describes the public API as an OpenAPI document, from the schemas that validate its requests (contract README,
 * "Public API"). `serverUrl` is what the paths are appended to; by default the address on which `npm start` serves.
 */
export function describePublicApi(serverUrl = 'http://127.0.0.1:8080'): Record<string, unknown> {
  return openApi.buildOpenApi({
    title: 'Workflow Automation Service',
    description: DESCRIPTION,
    serverUrl,
    tags: [
      { name: 'Organization', description: 'The organization that the API key belongs to.' },
      { name: 'Workflows', description: 'Read workflows and start them.' },
      { name: 'Runs', description: 'Follow what became of a start: additions to the four operations above.' },
      { name: 'Webhooks', description: 'The requests that the service sends to your endpoint.' },
    ],
    webhooks: WEBHOOKS,
    operations: Object.values<Operation>(OPERATIONS).map(toDescribed),
    error: ErrorResponse,
    errors: ERRORS,
    credential: {
      bearer: {
        type: 'http',
        scheme: 'bearer',
        description:
          'An API key: `wfk_`, 8 characters, `_` and 38 characters. Keys are created in the application or with `wf keys create`.',
      },
    },
    responseHeaders: RESPONSE_HEADERS,
  })
}

const DESCRIPTION = `
Read the workflows of your organization, and start them with a piece of text.

**Keys.** Send \`Authorization: Bearer wfk_…\`. A key belongs to one organization and has one or both of two scopes:
\`read\` for the GET operations, \`start\` for the POST.

**Starts** are answered at once with 202; the workflow runs a moment later. Starts of one session run one after the other,
in the order in which they were accepted. Send an \`Idempotency-Key\` to make a start safe to repeat.

**Errors** have one shape, regardless of their status. Match on \`error.code\`, never on \`error.message\`. Quote
\`error.request_id\` to support; it is also in the header \`X-Request-Id\`. A 422 lists every failing field in \`error.details\`. After a
429 or a 503 wait as many seconds as \`Retry-After\` says. When a start is answered 503, or not at all, it may or may not have
been accepted: repeat it with the same \`Idempotency-Key\`.

**Order of checks**: key (401), organization and scope (403), rate limit (429), route (404), syntax of the body (400), fields
(422), workflow (404), its state and the session's (409, 422).

**Text.** Lengths count Unicode code points. The search ignores case as Unicode's full case folding does (\`STRASSE\` finds
\`Straße\`) and does not normalize: \`é\` as one code point and as \`e\` with an accent are different texts. \`%\`, \`_\` and \`\\\` mean
themselves.

**Changes.** New values of \`scope\` and of a subagent source's \`type\` may appear at any time; do not reject unknown ones.
`.trim()

const ADDITION = ' An addition to the first four operations, which stay as they are.'

const TAGS: Record<OperationId, string> = {
  getOrganization: 'Organization',
  listWorkflows: 'Workflows',
  getWorkflow: 'Workflows',
  startWorkflow: 'Workflows',
  getRun: 'Runs',
  getSession: 'Runs',
}

const SUCCESS_EXAMPLES: Record<OperationId, openApi.Examples> = {
  getOrganization: { organization: { summary: 'An organization', value: ORGANIZATION_EXAMPLE } },
  listWorkflows: {
    page: { summary: 'A page that another follows', value: WORKFLOW_PAGE_EXAMPLE },
    nothing: { summary: 'No results', value: { data: [], pagination: { next_cursor: null, has_more: false } } },
  },
  getWorkflow: { workflow: { summary: 'A workflow', value: WORKFLOW_EXAMPLE } },
  startWorkflow: { accepted: { summary: 'The start is accepted', value: START_CONFIRMATION_EXAMPLE } },
  getRun: { run: { summary: 'A run that succeeded', value: PUBLIC_RUN_EXAMPLE } },
  getSession: { session: { summary: 'A session', value: PUBLIC_SESSION_EXAMPLE } },
}

const BODY_EXAMPLES: openApi.Examples = {
  newSession: { summary: 'In a new session', value: START_EXAMPLE },
  openSession: { summary: 'In an open session', value: START_IN_SESSION_EXAMPLE },
}

/** The statuses of errors (contract README, "Errors"). */
const DESCRIBED_ERRORS: openApi.DescribedError[] = [
  {
    status: 400,
    description: 'The request cannot be read.',
    examples: errorExample(
      'invalid_request',
      'The path cannot be read',
      'The path and the query must be percent-encoded UTF-8.',
    ),
  },
  {
    status: 401,
    description: 'No API key, or one that is mistyped, unknown, revoked or expired: `unauthorized`.',
    examples: errorExample('unauthorized', 'No key', 'Send your API key in the header "Authorization: Bearer wfk_…".'),
  },
  {
    status: 403,
    description:
      'The key lacks the scope: `insufficient_scope`; or its organization is suspended: `organization_suspended`.',
    examples: errorExample(
      'insufficient_scope',
      'The key lacks the scope',
      'This needs a key with the scope start; the key has read.',
    ),
  },
  {
    status: 404,
    description: 'No such id in the organization of the key; another organization’s is answered the same: `not_found`.',
    examples: errorExample('not_found', 'No such workflow', 'Workflow not found.'),
  },
  {
    status: 409,
    description:
      'The workflow cannot be started as it is: `workflow_inactive`, `no_active_api_trigger`, `no_users_with_access`; the session is closed: `session_closed`; the Idempotency-Key was used for another request: `idempotency_conflict`.',
    examples: errorExample(
      'workflow_inactive',
      'The workflow is inactive',
      'The workflow is inactive. Activate it, then start it again.',
    ),
  },
  {
    status: 422,
    description: 'Fields fail validation: `validation_error`, with every failing field and its code in `details`.',
    examples: errorExample(
      'validation_error',
      'Two fields fail',
      'context must have at least 1 character (and 1 more).',
      {
        details: [
          { field: 'context', code: 'string_too_short', message: 'must have at least 1 character' },
          {
            field: 'session_id',
            code: 'uuid_parsing',
            message: 'must be a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057',
          },
        ],
      },
    ),
  },
  {
    status: 429,
    description: 'Too many requests: `rate_limited`. Try again after `Retry-After` seconds.',
    examples: errorExample('rate_limited', 'Too many requests', 'Too many requests. Try again in 1 second.'),
  },
  {
    status: 500,
    description: 'An unexpected error: `internal_error`. Quote the `request_id` to support.',
    examples: errorExample('internal_error', 'An unexpected error', 'Something went wrong on our side.'),
  },
  {
    status: 503,
    description:
      'The service cannot answer at the moment: `service_unavailable`. Try again after `Retry-After` seconds.',
    examples: errorExample(
      'service_unavailable',
      'The database does not answer',
      'The database does not answer; try again in a moment.',
    ),
  },
]

/** With all codes of the API. */
const ERRORS: readonly openApi.DescribedError[] = DESCRIBED_ERRORS.map((error) => ({
  ...error,
  codes: PUBLIC_ERROR_CODES.filter((code) => ERROR_CODES[code] === error.status),
}))

/**
 * The errors of an operation, with the codes that it may answer. The contract declares all statuses for each of its
 * four operations; those that one of them never answers have no codes.
 */
function errorsOf(operation: Operation): openApi.DescribedError[] {
  const possible: readonly string[] = errorCodesOf(operation)
  return ERRORS.flatMap((error) => {
    const codes = error.codes?.filter((code) => possible.includes(code)) ?? []
    if (codes.length === error.codes?.length) return error
    if (codes.length > 0) return { ...error, codes }
    const description = 'Declared for every operation; this one does not answer it.'
    return operation.isAddition ? [] : { status: error.status, description, codes }
  })
}

const RATE_LIMITED_STATUSES = [200, 202, 400, 401, 404, 409, 422, 429, 500, 503]

const RESPONSE_HEADERS: Record<string, openApi.DescribedHeader> = {
  'X-Request-Id': {
    description:
      'Identifier of the request: the caller’s `X-Request-Id` if it is 1 to 128 plain characters, otherwise a new one.',
    schema: { type: 'string', examples: ['01a1fd4e-f105-74b4-8d5a-5afed503624a'] },
  },
  'RateLimit-Policy': {
    description:
      'The rate limit: `q` requests in `w` seconds (draft-ietf-httpapi-ratelimit-headers). Absent when there is no limit.',
    schema: { type: 'string', examples: ['"requests";q=600;w=60'] },
    statuses: RATE_LIMITED_STATUSES,
  },
  RateLimit: {
    description:
      'What remains of the limit: `r` requests now, the full quota in `t` seconds. Absent when there is no limit.',
    schema: { type: 'string', examples: ['"requests";r=599;t=60'] },
    statuses: RATE_LIMITED_STATUSES,
  },
  'Retry-After': {
    description: 'Seconds to wait before trying again.',
    schema: { type: 'integer', minimum: 1, examples: [1] },
    statuses: [429, 503],
  },
  'WWW-Authenticate': {
    description: 'How to authenticate.',
    schema: { type: 'string', examples: ['Bearer'] },
    statuses: [401],
  },
}

function toDescribed(operation: Operation): openApi.DescribedOperation {
  const id = operation.id as OperationId
  return {
    ...operation,
    errors: errorsOf(operation),
    tag: TAGS[id],
    description: `${operation.description}\n\nNeeds the scope \`${operation.scope}\`.${operation.isAddition ? ADDITION : ''}`,
    ...(operation.body ? { bodyExamples: BODY_EXAMPLES } : {}),
    successes: [{ ...operation.success, examples: SUCCESS_EXAMPLES[id] }],
  }
}
