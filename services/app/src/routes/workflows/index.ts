import { LIST_DEFAULT_LIMIT } from '@workflow-service/contract'
import {
  createWorkflow,
  deleteFile,
  deleteTrigger,
  deleteWorkflow,
  duplicateWorkflow,
  listWorkflowRows,
  readAppFile,
  readWorkflowDetail,
  saveAutoRun,
  saveFile,
  saveTrigger,
  saveWorkflow,
  saveWorkflowUsers,
  setWorkflowActive,
  viewerOf,
} from '@workflow-service/database'
import { found, invalidFields } from '@workflow-service/service-kit'
import type { AppContext } from '../../app-context.ts'
import type { AppHandlers, AppRequestOf, AppRules } from '../app-handlers.ts'
import { byTime, readCursor, toPage } from '../paging.ts'
import { checkRulesFile, checkStoredWorkflow, toWarnings } from './check-workflow.ts'
import { answerEdited, runEdit, toEdit } from './edit-workflow.ts'
import { exportOrganization, exportWorkflow } from './export-workflow.ts'
import { checkFile, checkTrigger } from './part-rules.ts'
import { getReadiness } from './readiness.ts'
import { startWorkflow } from './start-workflow.ts'

const WORKFLOWS = byTime('workflows')

/** Handlers for workflows, their triggers, files, people and schedules. */
export function workflowsHandlers(ctx: AppContext) {
  const { db } = ctx
  return {
    listWorkflows: async ({ principal, query }) => {
      const { limit = LIST_DEFAULT_LIMIT, search = '' } = query
      const after = readCursor(query, WORKFLOWS)
      return { body: toPage(await listWorkflowRows(db, viewerOf(principal), { limit, search, after }), WORKFLOWS) }
    },
    createWorkflow: async (request) => {
      const { id, ...values } = request.body
      const edit = toEdit({ ...request, params: { workflow_id: id } })
      return { body: await runEdit(ctx, request, createWorkflow(db, edit, values)) }
    },
    getWorkflow: async ({ params, principal }) => {
      const workflow = found(await readWorkflowDetail(db, viewerOf(principal), params.workflow_id), 'Workflow')
      const check = await checkStoredWorkflow(ctx, principal.organizationId, workflow.id)
      return { body: { ...workflow, warnings: toWarnings(check) } }
    },
    saveWorkflow: answerEdited(ctx, (edit, { body }: AppRequestOf<'saveWorkflow'>) => saveWorkflow(db, edit, body)),
    deleteWorkflow: async (request) => {
      await runEdit(ctx, request, deleteWorkflow(db, toEdit(request)))
      return { status: 204 }
    },
    duplicateWorkflow: async (request) => ({
      body: await runEdit(ctx, request, duplicateWorkflow(db, toEdit(request), request.body)),
    }),
    exportWorkflow: exportWorkflow(ctx),
    exportManifest: exportOrganization(ctx),
    setWorkflowActive: answerEdited(ctx, (edit, { body }: AppRequestOf<'setWorkflowActive'>) =>
      setWorkflowActive(db, edit, body.is_active),
    ),
    saveAutoRun: answerEdited(ctx, (edit, { body }: AppRequestOf<'saveAutoRun'>) => saveAutoRun(db, edit, body)),
    saveWorkflowUsers: answerEdited(ctx, (edit, { body }: AppRequestOf<'saveWorkflowUsers'>) =>
      saveWorkflowUsers(db, edit, { userIds: body.user_ids, version: body.version }),
    ),
    saveTrigger: answerEdited(ctx, (edit, { params, body }: AppRequestOf<'saveTrigger'>) =>
      saveTrigger(db, edit, params.trigger_id, body),
    ),
    deleteTrigger: answerEdited(ctx, (edit, { params, query }: AppRequestOf<'deleteTrigger'>) =>
      deleteTrigger(db, edit, params.trigger_id, query.version),
    ),
    getFile: async ({ params, principal }) => ({
      body: found(await readAppFile(db, viewerOf(principal), params.workflow_id, params.file_id), 'File'),
    }),
    saveFile: answerEdited(ctx, async (edit, { params, body, principal }: AppRequestOf<'saveFile'>) => {
      const errors = await checkRulesFile(ctx, principal.organizationId, body)
      if (errors.length > 0) throw invalidFields(errors)
      return await saveFile(db, edit, params.file_id, body)
    }),
    deleteFile: answerEdited(ctx, (edit, { params, query }: AppRequestOf<'deleteFile'>) =>
      deleteFile(db, edit, params.file_id, query.version),
    ),
    getReadiness: getReadiness(ctx),
    startWorkflow: startWorkflow(ctx),
  } satisfies Partial<AppHandlers>
}

export const workflowsRules = {
  saveTrigger: { body: checkTrigger },
  saveFile: { body: checkFile },
} satisfies AppRules
