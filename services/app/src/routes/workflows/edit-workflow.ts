import type { FieldError, WorkflowDetailOut } from '@workflow-service/contract'
import { EditRefused, type LimitedByQuotas, type WorkflowEdit } from '@workflow-service/database'
import { ApiError, invalidFields, notFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { Principal } from '../../auth/principal.ts'
import { changedMeanwhile } from '../changed-meanwhile.ts'

interface EditRequest extends LimitedByQuotas {
  readonly params: { readonly workflow_id: string }
  readonly principal: Principal
  readonly requestId: string
}

export function editContextOf({ params, principal, requestId, quotas }: EditRequest): WorkflowEdit {
  return { workflowId: params.workflow_id, principal, requestId, ...(quotas && { quotas }) }
}

/**
 * Waits for an edit, and sends the open pages of the organization a notice.
 * @throws ApiError if it is refused.
 */
export async function withEditErrors<Result>(
  { changeNotices }: Pick<AppServiceContext, 'changeNotices'>,
  { principal }: Pick<EditRequest, 'principal'>,
  edit: Promise<Result>,
): Promise<Result> {
  try {
    const result = await edit
    changeNotices.add(principal.organizationId, 'workflows')
    return result
  } catch (error) {
    throw error instanceof EditRefused ? toApiError(error) : error
  }
}

/** Creates a handler that answers with the workflow after the edit. */
export function editHandler<Request extends EditRequest>(
  ctx: AppServiceContext,
  edit: (edit: WorkflowEdit, request: Request) => Promise<WorkflowDetailOut>,
) {
  return async (request: Request) => ({
    body: await withEditErrors(ctx, request, edit(editContextOf(request), request)),
  })
}

function toApiError({ problem, what, current, index, message }: EditRefused): ApiError {
  switch (problem) {
    case 'not_found':
      return notFound(what)
    case 'hidden_from_editor':
      return invalidField('scope', 'would hide the workflow from you; add yourself to its people first')
    case 'unknown_user':
      return invalidField(`user_ids.${index}`, 'must be a user of your organization', 'not_found')
    case 'file_name_taken':
      return invalidField('name', 'is the name of another file in this folder')
    case 'model_not_offered':
      return invalidField('model', 'is not offered; choose one of the list, or ask an admin to offer it')
    case 'budget_of_admins':
      return new ApiError('forbidden_for_role', 'Only admins and owners can change budgets.')
    case 'id_taken':
      return new ApiError('id_taken', 'This id is taken. Choose a new one.')
    case 'workflow_busy':
      return new ApiError('workflow_busy', 'A run of this workflow has not ended. Delete it when all have ended.')
    case 'invalid_value':
      return invalidField(what, message)
    case 'limit_reached':
      return new ApiError('quota_exceeded', message)
    case 'changed_meanwhile':
      return changedMeanwhile(current)
    default:
      return problem satisfies never
  }
}

function invalidField(field: string, message: string, code: FieldError['code'] = 'value_error'): ApiError {
  return invalidFields([{ field, code, message }])
}
