import { compareVersion, listVersions, restoreVersion } from '@workflow-service/database'
import { orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { checkUnsavedRules } from './check-workflow.ts'
import { assertVisible, editHandler } from './edit-workflow.ts'

/** Handlers for the versions of workflows, and for rules that are not saved. */
export function versionHandlers(ctx: AppServiceContext) {
  const { db } = ctx
  return {
    listWorkflowVersions: async (request) => {
      await assertVisible(ctx, request)
      return { data: await listVersions(db, request.principal, request.params.workflow_id) }
    },
    getWorkflowVersion: async ({ params, principal, query }) => {
      const { workflow_id: workflowId, version_id: versionId } = params
      const compared = { workflowId, versionId, with: query.with ?? 'previous' }
      return orNotFound(await compareVersion(db, principal, compared), 'Version')
    },
    restoreWorkflowVersion: editHandler(ctx, (edit, { params, body }) =>
      restoreVersion(db, edit, { versionId: params.version_id, newest: body.newest }),
    ),
    checkRules: async (request) => {
      await assertVisible(ctx, request)
      const errors = await checkUnsavedRules(ctx, request.principal.organizationId, request.body.content)
      return { errors: errors.map(({ line = null, message }) => ({ line, message })) }
    },
  } satisfies Partial<AppHandlers>
}
