import type { FieldError } from '@workflow-service/contract'
import {
  type EditRefused,
  type LimitedByQuotas,
  readWorkflowDetail,
  type WorkflowEdit,
} from '@workflow-service/database'
import { ApiError, invalidFields, notFound, orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { Principal } from '../../auth/principal.ts'
import { changedMeanwhile } from '../app-handlers.ts'

interface EditRequest extends Required<LimitedByQuotas> {
  readonly params: { readonly workflow_id: string }
  readonly principal: Principal
  readonly requestId: string
}

export function editContextOf({ params, principal, requestId, quotas }: EditRequest): WorkflowEdit {
  return { workflowId: params.workflow_id, principal, requestId, quotas }
}

/** Creates a handler that edits a workflow, and sends the open pages of the organization a notice. */
export function editHandler<Request extends EditRequest, Result>(
  { changeNotices }: Pick<AppServiceContext, 'changeNotices'>,
  edit: (edit: WorkflowEdit, request: Request) => Promise<Result>,
): (request: Request) => Promise<Result> {
  return async (request) => {
    const result = await edit(editContextOf(request), request)
    changeNotices.add(request.principal.organizationId, 'workflows')
    return result
  }
}

/** @throws ApiError 404 */
export async function assertVisible(
  { db }: Pick<AppServiceContext, 'db'>,
  { principal, params }: Pick<EditRequest, 'principal' | 'params'>,
): Promise<void> {
  orNotFound(await readWorkflowDetail(db, principal, params.workflow_id), 'Workflow')
}

export function editRefused({ problem, what, current, index, message }: EditRefused): ApiError {
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
