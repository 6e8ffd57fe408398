import { exportManifest, ManifestTooLargeError, readWorkflowDetail, viewerOf } from '@workflow-service/database'
import { ApiError, notFound } from '@workflow-service/service-kit'
import type { AppContext } from '../../app-context.ts'
import type { AppHandlers } from '../app-handlers.ts'

/** Exports a workflow that the person sees as a manifest. */
export function exportWorkflow({ db }: Pick<AppContext, 'db'>): AppHandlers['exportWorkflow'] {
  return async ({ params, principal }) => {
    const { workflow_id: workflowId } = params
    if (!(await readWorkflowDetail(db, viewerOf(principal), workflowId))) throw notFound('Workflow')
    const yaml = await exportManifest(db, principal.organizationId, { workflowId }).catch((error: unknown) => {
      if (!(error instanceof ManifestTooLargeError)) throw error
      throw new ApiError('validation_error', 'The manifest is too large for a page. Export it with `wf export`.')
    })
    if (yaml === undefined) throw notFound('Workflow')
    return { status: 200, body: { yaml } }
  }
}
