import type { TSchema } from 'typebox'
import { ERROR_CODES, type ErrorCode, PUBLIC_ERROR_CODES } from '../errors.ts'
import type { Scope } from '../enumerations.ts'
import { IDEMPOTENCY_KEY_MAX_LENGTH, SEARCH_MAX_LENGTH } from '../limits.ts'
import {
  OrganizationOut,
  PAGE_QUERY,
  WorkflowOut,
  WorkflowPage,
  WorkflowStartIn,
  WorkflowStartOut,
} from './resources.ts'
import { PublicRunOut, PublicSessionOut, RunQuery } from './runs.ts'
import { type BaseOperation, defineOperations, type OperationRow } from '../schema/define-operations.ts'
import { Optional, Parameters, type Static } from '../schema/objects.ts'
import { Str, Text, Uuid } from '../schema/values.ts'

/** One operation of the public API: the gateway mounts it, the OpenAPI document describes it. */
export interface Operation extends BaseOperation {
  readonly scope: Scope
  readonly success: { readonly status: 200 | 202; readonly schema: TSchema; readonly description: string }
  /** The state of what it acts on may refuse it: with these codes of the status 409. */
  readonly conflicts?: readonly ErrorCode[]
  /** Not one of the contract's four operations. */
  readonly isAddition?: true
}

/** Lists the error codes that an operation may answer. */
export function errorCodesOf({ params, query, body, conflicts = [] }: Operation): ErrorCode[] {
  const isPossible: Partial<Record<ErrorCode, boolean>> = {
    invalid_json: body !== undefined,
    unsupported_media_type: body !== undefined,
    body_too_large: body !== undefined,
    not_found: params !== undefined,
    validation_error: [params, query, body].some(Boolean),
  }
  return PUBLIC_ERROR_CODES.filter(
    (code) => isPossible[code] ?? (ERROR_CODES[code] !== 409 || conflicts.includes(code)),
  )
}

/** The parameters of paths. */
const PARAMS = {
  workflow_id: Uuid('Workflow identifier.', { examples: ['01890a5d-ac96-774b-bcce-b302099a8057'] }),
  run_id: Uuid('The `id` of the start.', { examples: ['01a1fd4e-f109-7162-9275-69e670388c60'] }),
  session_id: Uuid('The `session_id` of a start.', { examples: ['01a1fd4e-f10a-7c3b-8d21-5b9e0f7a6c44'] }),
}

/** Query parameters of the list (contract README, "Pagination and search"). */
export const WorkflowListQuery = Parameters({
  search: Optional(
    Text(SEARCH_MAX_LENGTH, 'Only workflows whose name or description contains this text, ignoring case.', 0, {
      examples: ['order'],
    }),
  ),
  ...PAGE_QUERY,
})
export type WorkflowListQuery = Static<typeof WorkflowListQuery>

/** Headers of a start (contract README, "Idempotency" and "Trace context"). */
const StartHeaders = Parameters({
  'Idempotency-Key': Optional(
    Str(
      'Makes the request safe to repeat: for 24 hours the same key with the same body gives the same answer and starts nothing again; with another body the answer is 409 `idempotency_conflict`. Choose a new one, such as a UUID, for each start.',
      { minLength: 1, maxLength: IDEMPOTENCY_KEY_MAX_LENGTH, examples: ['7b1f7c9e-4c52-4a53-9f3c-6a1c4d6c0c8e'] },
    ),
  ),
  traceparent: Optional(
    Str(
      'W3C Trace Context: the run and the requests to your endpoint continue this trace. An invalid value is ignored.',
      { examples: ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'] },
    ),
  ),
  tracestate: Optional(
    Str('W3C Trace Context: goes with `traceparent`. Ignored without one, and if it is invalid or too long.', {
      examples: ['vendor=value'],
    }),
  ),
})

const ROWS = {
  getOrganization: {
    route: 'get /v1/organization',
    summary: 'Get the organization',
    description: 'Returns the organization that the API key belongs to.',
    scope: 'read',
    success: { status: 200, schema: OrganizationOut, description: 'The organization.' },
  },
  listWorkflows: {
    route: 'get /v1/workflows',
    summary: 'List workflows',
    description:
      'Returns the workflows of the organization one page at a time, oldest first, active or not and regardless of their scope. A page has fewer workflows than `limit` when they are large; `has_more` shows whether there are more.',
    scope: 'read',
    query: WorkflowListQuery,
    success: { status: 200, schema: WorkflowPage, description: 'One page of workflows.' },
  },
  getWorkflow: {
    route: 'get /v1/workflows/{workflow_id}',
    summary: 'Get a workflow',
    description: 'Returns one workflow, in the same shape as in the list.',
    scope: 'read',
    success: { status: 200, schema: WorkflowOut, description: 'The workflow.' },
  },
  startWorkflow: {
    route: 'post /v1/workflows/{workflow_id}/start',
    summary: 'Start a workflow',
    description:
      'Accepts a start and answers at once; the workflow runs a moment later, in the given session or in a new one. The workflow must be active, have an active trigger whose source is `api`, and at least one user with access.',
    scope: 'start',
    headers: StartHeaders,
    body: WorkflowStartIn,
    success: { status: 202, schema: WorkflowStartOut, description: 'The start is accepted and will run.' },
    conflicts: PUBLIC_ERROR_CODES.filter((code) => ERROR_CODES[code] === 409),
  },
  getRun: {
    route: 'get /v1/runs/{run_id}',
    summary: 'Get a run',
    description:
      'Returns what became of a start: its status, why it failed, and the payloads that were sent. With `wait`, the answer comes when the run has ended, at the latest after so many seconds.',
    scope: 'read',
    query: RunQuery,
    success: { status: 200, schema: PublicRunOut, description: 'The run.' },
    isAddition: true,
  },
  getSession: {
    route: 'get /v1/sessions/{session_id}',
    summary: 'Get a session',
    description: 'Returns a session with its latest runs.',
    scope: 'read',
    success: { status: 200, schema: PublicSessionOut, description: 'The session.' },
    isAddition: true,
  },
} as const satisfies Record<string, OperationRow<Operation>>

/** Every operation of the public API (contract README, "Public API"). */
export const OPERATIONS = defineOperations(ROWS, PARAMS)
export type OperationId = keyof typeof OPERATIONS
