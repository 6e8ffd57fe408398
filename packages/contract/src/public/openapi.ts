import { ErrorResponse, PUBLIC_ERROR_CODES } from '../errors.ts'
import {
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
    errorCodes: PUBLIC_ERROR_CODES,
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

const RATE_LIMITED_STATUSES = [200, 202, 400, 401, 404, 409, 422, 429, 500, 503]

export const RESPONSE_HEADERS = {
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
} satisfies Record<string, openApi.DescribedHeader>

function toDescribed(operation: Operation): openApi.DescribedOperation {
  const id = operation.id as OperationId
  return {
    ...operation,
    errorCodes: errorCodesOf(operation),
    // The contract declares all statuses for each of its four operations.
    declaresAllStatuses: !operation.isAddition,
    tag: TAGS[id],
    description: `${operation.description}\n\nNeeds the scope \`${operation.scope}\`.${operation.isAddition ? ADDITION : ''}`,
    ...(operation.body ? { bodyExamples: BODY_EXAMPLES } : {}),
    successes: [{ ...operation.success, examples: SUCCESS_EXAMPLES[id] }],
  }
}
