import { compareVersion, listVersions, readWorkflowDetail, restoreVersion, viewerOf } from '@workflow-service/database'
import { orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppHandlers, AppRequestOf } from '../app-handlers.ts'
import { checkUnsavedRules } from './check-workflow.ts'
import { editHandler } from './edit-workflow.ts'

/** Handlers for the versions of workflows, and for rules that are not saved. */
export function versionHandlers(ctx: AppServiceContext) {
  const { db } = ctx
  return {
    listWorkflowVersions: async ({ params, principal }) => {
      const viewer = viewerOf(principal)
      orNotFound(await readWorkflowDetail(db, viewer, params.workflow_id), 'Workflow')
      return { body: { data: await listVersions(db, viewer, params.workflow_id) } }
    },
    getWorkflowVersion: async ({ params, principal, query }) => {
      const { workflow_id: workflowId, version_id: versionId } = params
      const compared = { workflowId, versionId, with: query.with ?? 'previous' }
      return { body: orNotFound(await compareVersion(db, viewerOf(principal), compared), 'Version') }
    },
    restoreWorkflowVersion: editHandler(ctx, (edit, { params, body }: AppRequestOf<'restoreWorkflowVersion'>) =>
      restoreVersion(db, edit, { versionId: params.version_id, newest: body.newest }),
    ),
    checkRules: async ({ params, principal, body }) => {
      orNotFound(await readWorkflowDetail(db, viewerOf(principal), params.workflow_id), 'Workflow')
      const errors = await checkUnsavedRules(ctx, principal.organizationId, body.content)
      return { body: { errors: errors.map(({ line = null, message }) => ({ line, message })) } }
    },
  } satisfies Partial<AppHandlers>
}
