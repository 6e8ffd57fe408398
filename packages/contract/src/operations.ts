import { type Static, type TSchema, Type } from 'typebox'
import { OrganizationOut, WorkflowOut, WorkflowPage, WorkflowStartIn, WorkflowStartOut } from './resources.ts'
import { closed, Uuid } from './schema.ts'

/** What a key may do. */
export const SCOPES = ['read', 'start'] as const
export type Scope = (typeof SCOPES)[number]

/** One operation of the public API, as the gateway mounts it and the OpenAPI document shows it. */
export interface Operation {
  readonly id: string
  readonly method: 'get' | 'post'
  /** OpenAPI style: `/v1/workflows/{workflow_id}`. */
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly scope: Scope
  readonly params?: TSchema
  readonly query?: TSchema
  readonly headers?: TSchema
  readonly body?: TSchema
  /** Fields of the body that lose the white space at both ends before they are checked. */
  readonly trimmed?: readonly string[]
  readonly success: { readonly status: 200 | 202; readonly schema: TSchema; readonly description: string }
}

const WorkflowParams = Type.Object(
  { workflow_id: Uuid({ description: 'Workflow identifier.' }) },
  { ...closed, title: 'WorkflowParams', description: 'Path parameters.' },
)

/** Contract 8: items on a page when the caller does not say. */
export const LIST_DEFAULT_LIMIT = 25

/** Contract 4.2: the query of the list. */
export const WorkflowListQuery = Type.Object(
  {
    search: Type.Optional(
      Type.String({
        maxLength: 200,
        format: 'storable',
        description: 'Only workflows whose name or description contains this text, ignoring case.',
        examples: ['order'],
      }),
    ),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100, default: LIST_DEFAULT_LIMIT, description: 'Items on the page.' }),
    ),
    cursor: Type.Optional(
      Type.String({
        maxLength: 512,
        description: 'The `next_cursor` of the page before; omit it to start from the beginning.',
      }),
    ),
  },
  { title: 'WorkflowListQuery', description: 'Query parameters of the list.' },
)
export type WorkflowListQuery = Static<typeof WorkflowListQuery>

/** Design 5: the header that makes a start safe to repeat. */
const StartHeaders = Type.Object(
  {
    'Idempotency-Key': Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description:
          'Makes the request safe to repeat: for 24 hours the same key with the same body gives the same answer and starts nothing again; with another body it is a 409 `idempotency_conflict`. Choose a new one, such as a UUID, for each start.',
        examples: ['7b1f7c9e-4c52-4a53-9f3c-6a1c4d6c0c8e'],
      }),
    ),
  },
  { title: 'StartHeaders', description: 'Headers of a start.' },
)

/** Contract 4: every operation of the public API. */
export const OPERATIONS = {
  getOrganization: {
    id: 'getOrganization',
    method: 'get',
    path: '/v1/organization',
    summary: 'Get the organization',
    description: 'Returns the organization that the API key belongs to.',
    scope: 'read',
    success: { status: 200, schema: OrganizationOut, description: 'The organization.' },
  },
  listWorkflows: {
    id: 'listWorkflows',
    method: 'get',
    path: '/v1/workflows',
    summary: 'List workflows',
    description:
      'Returns the workflows of the organization one page at a time, oldest first, whether active or not and whatever their scope.',
    scope: 'read',
    query: WorkflowListQuery,
    success: { status: 200, schema: WorkflowPage, description: 'One page of workflows.' },
  },
  getWorkflow: {
    id: 'getWorkflow',
    method: 'get',
    path: '/v1/workflows/{workflow_id}',
    summary: 'Get a workflow',
    description: 'Returns one workflow, in the same shape as in the list.',
    scope: 'read',
    params: WorkflowParams,
    success: { status: 200, schema: WorkflowOut, description: 'The workflow.' },
  },
  startWorkflow: {
    id: 'startWorkflow',
    method: 'post',
    path: '/v1/workflows/{workflow_id}/start',
    summary: 'Start a workflow',
    description:
      'Accepts a start and answers at once; the workflow runs a moment later, in the session given or in a new one. The workflow must be active, have an active trigger whose source is `api`, and at least one user with access.',
    scope: 'start',
    params: WorkflowParams,
    headers: StartHeaders,
    body: WorkflowStartIn,
    trimmed: ['context'],
    success: { status: 202, schema: WorkflowStartOut, description: 'The start is accepted and will run.' },
  },
} as const satisfies Record<string, Operation>
export type OperationId = keyof typeof OPERATIONS
