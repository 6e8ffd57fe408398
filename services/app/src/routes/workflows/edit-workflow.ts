import type { WorkflowDetailOut } from '@workflow-service/contract'
import { EditRefused, type WorkflowEdit } from '@workflow-service/database'
import { ApiError, invalidFields, notFound } from '@workflow-service/service-kit'
import type { AppContext } from '../../app-context.ts'
import type { Principal } from '../../auth/principal.ts'
import { changedMeanwhile } from '../changed-meanwhile.ts'

/** A request to change a workflow. */
interface EditRequest {
  readonly params: { readonly workflow_id: string }
  readonly principal: Principal
  readonly requestId: string
}

export function toEdit({ params, principal, requestId }: EditRequest): WorkflowEdit {
  return { workflowId: params.workflow_id, principal, requestId }
}

/**
 * Runs an edit, and tells the open pages of the organization.
 * @throws ApiError if it is refused.
 */
export async function runEdit<Result>(
  { hints }: Pick<AppContext, 'hints'>,
  { principal }: Pick<EditRequest, 'principal'>,
  edit: Promise<Result>,
): Promise<Result> {
  try {
    const result = await edit
    hints.add(principal.organizationId, 'workflows')
    return result
  } catch (error) {
    throw error instanceof EditRefused ? toApiError(error) : error
  }
}

/** Creates a handler that answers with the workflow after the edit. */
export function answerEdited<Request extends EditRequest>(
  ctx: AppContext,
  edit: (edit: WorkflowEdit, request: Request) => Promise<WorkflowDetailOut>,
) {
  return async (request: Request) => ({
    body: await runEdit(ctx, request, edit(toEdit(request), request)),
  })
}

function toApiError({ problem, what, current, violations }: EditRefused): ApiError {
  switch (problem) {
    case 'not_found':
      return notFound(what)
    case 'invalid':
      return invalidFields(violations)
    case 'id_taken':
      return new ApiError('id_taken', 'This id is taken. Choose a new one.')
    case 'workflow_busy':
      return new ApiError('workflow_busy', 'A run of this workflow has not ended. Delete it when all have ended.')
    case 'changed_meanwhile':
      return changedMeanwhile(current)
    default:
      return problem satisfies never
  }
}
