import { notFound } from '@workflow-service/service-kit'
import type { AppContext } from '../app-context.ts'
import type { PublicApiHandlers } from '../operation-handlers.ts'

/** `GET /v1/workflows/{workflow_id}` (contract 4.3): the same 404 for a missing workflow and another organization's. */
export function getWorkflow({ workflows }: Pick<AppContext, 'workflows'>): PublicApiHandlers['getWorkflow'] {
  return async ({ params, principal }) => {
    const workflow = await workflows.find(principal.organizationId, params.workflow_id)
    if (workflow === null) throw notFound('Workflow')
    return workflow
  }
}
