import { readWorkflowDetail, viewerOf } from '@workflow-service/database'
import { exportManifest, ManifestTooLargeError } from '@workflow-service/database/manifest'
import { ApiError, orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppHandlers } from '../app-handlers.ts'

/** Exports a workflow that the person sees as a manifest. */
export function exportWorkflow(ctx: Pick<AppServiceContext, 'db'>): AppHandlers['exportWorkflow'] {
  return async ({ params, principal }) => {
    const { workflow_id: workflowId } = params
    orNotFound(await readWorkflowDetail(ctx.db, viewerOf(principal), workflowId), 'Workflow')
    return await answerManifest(ctx, principal.organizationId, { workflowId })
  }
}

export function exportOrganization(ctx: Pick<AppServiceContext, 'db'>): AppHandlers['exportManifest'] {
  return ({ principal }) => answerManifest(ctx, principal.organizationId, {})
}

async function answerManifest(
  { db }: Pick<AppServiceContext, 'db'>,
  organizationId: string,
  options: { workflowId?: string },
): Promise<{ body: { yaml: string } }> {
  const yaml = await exportManifest(db, organizationId, options).catch((error: unknown) => {
    if (!(error instanceof ManifestTooLargeError)) throw error
    throw new ApiError('manifest_too_large', 'The manifest is larger than 10 MiB. Export it with `wf export`.')
  })
  return { body: { yaml: orNotFound(yaml, 'Workflow') } }
}
