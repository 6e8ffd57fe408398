import { READINESS_CODES } from '@workflow-service/contract/app'
import {
  createWorkflow,
  deleteFile,
  deleteTrigger,
  deleteWorkflow,
  duplicateWorkflow,
  findWorkflowRows,
  listModels,
  listWorkflowRows,
  readAppFile,
  readReadiness,
  readWorkflowDetail,
  saveAutoRun,
  saveFile,
  saveTrigger,
  saveWorkflow,
  saveWorkflowAgent,
  saveWorkflowUsers,
  setWorkflowActive,
  viewerOf,
  wakeSpentSessions,
} from '@workflow-service/database'
import { orNotFound, invalidFields } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppHandlers, AppRequestOf, AppRules } from '../app-handlers.ts'
import { answerIds, answerPage, byTime } from '../paging.ts'
import { checkMediaFile, checkRulesFile, checkStoredWorkflow } from './check-workflow.ts'
import { editHandler, withEditErrors, editContextOf } from './edit-workflow.ts'
import { exportOrganization, exportWorkflow } from './export-workflow.ts'
import { evaluationHandlers } from './evaluations.ts'
import { checkFile, checkSchedule, checkTrigger } from './part-rules.ts'
import { startScheduled, startWorkflow } from './start-workflow.ts'
import { getTrial, tryWorkflow } from './try-workflow.ts'
import { versionHandlers } from './versions.ts'

const WORKFLOWS = byTime('workflows')

/** Handlers for workflows, their triggers, files, people and schedules. */
export function workflowsHandlers(ctx: AppServiceContext) {
  const { db } = ctx
  return {
    listWorkflows: async ({ principal, query }) => {
      const { search = '' } = query
      const viewer = viewerOf(principal)
      return (
        (await answerIds(query, (ids) => findWorkflowRows(db, viewer, ids))) ??
        (await answerPage(query, WORKFLOWS, (page) => listWorkflowRows(db, viewer, { search, ...page })))
      )
    },
    createWorkflow: async (request) => {
      const { id, ...values } = request.body
      const edit = editContextOf({ ...request, params: { workflow_id: id } })
      return { body: await withEditErrors(ctx, request, createWorkflow(db, edit, values)) }
    },
    getWorkflow: async ({ params, principal }) => {
      const workflow = orNotFound(await readWorkflowDetail(db, viewerOf(principal), params.workflow_id), 'Workflow')
      const { warnings } = await checkStoredWorkflow(ctx, principal.organizationId, workflow.id)
      return { body: { ...workflow, warnings: [...warnings] } }
    },
    saveWorkflow: editHandler(ctx, (edit, { body }: AppRequestOf<'saveWorkflow'>) => saveWorkflow(db, edit, body)),
    deleteWorkflow: async (request) => {
      await withEditErrors(ctx, request, deleteWorkflow(db, editContextOf(request)))
      return { status: 204 }
    },
    duplicateWorkflow: async (request) => ({
      body: await withEditErrors(ctx, request, duplicateWorkflow(db, editContextOf(request), request.body)),
    }),
    exportWorkflow: exportWorkflow(ctx),
    exportManifest: exportOrganization(ctx),
    setWorkflowActive: editHandler(ctx, (edit, { body }: AppRequestOf<'setWorkflowActive'>) =>
      setWorkflowActive(db, edit, body.is_active),
    ),
    saveAutoRun: editHandler(ctx, (edit, { body }: AppRequestOf<'saveAutoRun'>) => saveAutoRun(db, edit, body)),
    saveWorkflowAgent: editHandler(ctx, async (edit, { params, body }: AppRequestOf<'saveWorkflowAgent'>) => {
      const saved = await saveWorkflowAgent(db, edit, body)
      await wakeSpentSessions(db, edit.principal.organizationId, params.workflow_id)
      return saved
    }),
    listModels: async ({ principal }) => ({ body: { data: await listModels(db, principal.organizationId) } }),
    startScheduled: startScheduled(ctx),
    saveWorkflowUsers: editHandler(ctx, (edit, { body }: AppRequestOf<'saveWorkflowUsers'>) =>
      saveWorkflowUsers(db, edit, { userIds: body.user_ids, version: body.version }),
    ),
    saveTrigger: editHandler(ctx, (edit, { params, body }: AppRequestOf<'saveTrigger'>) =>
      saveTrigger(db, edit, params.trigger_id, body),
    ),
    deleteTrigger: editHandler(ctx, (edit, { params, query }: AppRequestOf<'deleteTrigger'>) =>
      deleteTrigger(db, edit, params.trigger_id, query.version),
    ),
    getFile: async ({ params, principal }) => ({
      body: orNotFound(await readAppFile(db, viewerOf(principal), params.workflow_id, params.file_id), 'File'),
    }),
    saveFile: editHandler(ctx, async (edit, request: AppRequestOf<'saveFile'>) => {
      const { params, body, principal } = request
      const errors = await checkRulesFile(ctx, principal.organizationId, body)
      errors.push(...(await checkMediaFile(ctx, request)))
      if (errors.length > 0) throw invalidFields(errors)
      return await saveFile(db, edit, params.file_id, body)
    }),
    deleteFile: editHandler(ctx, (edit, { params, query }: AppRequestOf<'deleteFile'>) =>
      deleteFile(db, edit, params.file_id, query.version),
    ),
    ...versionHandlers(ctx),
    ...evaluationHandlers(ctx),
    getReadiness: async ({ params, principal }) => {
      const workflow = orNotFound(await readReadiness(db, viewerOf(principal), params.workflow_id), 'Workflow')
      const { sources, unknownNames, warnings } = await checkStoredWorkflow(
        ctx,
        principal.organizationId,
        params.workflow_id,
      )
      const checks = READINESS_CODES.map((code) => ({ code, is_met: !workflow.violations[code] }))
      const canStart = !workflow.isSuspended && checks.every((check) => check.is_met)
      return {
        body: {
          can_start: canStart,
          checks,
          sources: [...sources],
          unknown_names: [...unknownNames],
          warnings: [...warnings],
        },
      }
    },
    tryWorkflow: tryWorkflow(ctx),
    getTrial: getTrial(ctx),
    startWorkflow: startWorkflow(ctx),
  } satisfies Partial<AppHandlers>
}

export const workflowsRules = {
  saveTrigger: { body: checkTrigger },
  saveAutoRun: { body: checkSchedule },
  saveFile: { body: checkFile },
} satisfies AppRules
