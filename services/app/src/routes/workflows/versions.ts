import { compareVersion, draftRunRules, listVersions, restoreVersion } from '@workflow-service/database'
import { orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { checkStoredWorkflow, checkUnsavedRules } from './check-workflow.ts'
import { assertVisible, editHandler } from './edit-workflow.ts'

const NO_WARNING = { message: 'Rules take the place of the task', excerpt: 'what the task says' }

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
    draftRules: async (request) => {
      await assertVisible(ctx, request)
      const { organizationId } = request.principal
      const { workflow_id: workflowId } = request.params
      const { warnings } = await checkStoredWorkflow(ctx, organizationId, workflowId)
      const { message, excerpt } = warnings.find(({ code }) => code === 'rules_needed') ?? NO_WARNING
      const draft = { workflowId, error: `rules_needed: ${message}. The sentence is: ${excerpt}`, steps: [] }
      return { content: orNotFound(await draftRunRules(db, organizationId, draft), 'Workflow') }
    },
    checkRules: async (request) => {
      await assertVisible(ctx, request)
      const errors = await checkUnsavedRules(ctx, request.principal.organizationId, request.body.content)
      return { errors: errors.map(({ line = null, message }) => ({ line, message })) }
    },
  } satisfies Partial<AppHandlers>
}
