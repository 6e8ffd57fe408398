import { notFound } from '@workflow-service/service-kit'
import type { GatewayContext } from '../gateway-context.ts'
import { joinJson } from '../workflows/workflow-documents.ts'
import type { PublicApiHandlers } from './operation-handlers.ts'

/**
 * `GET /v1/workflows/{workflow_id}` (contract README, "Public API"): 404 for a missing workflow and for one of another
 * organization.
 */
export function getWorkflow({ workflows }: Pick<GatewayContext, 'workflows'>): PublicApiHandlers['getWorkflow'] {
  return async ({ params, principal }) => {
    const document = await workflows.find(principal.organizationId, params.workflow_id)
    if (document === null) throw notFound('Workflow')
    return joinJson(document)
  }
}
