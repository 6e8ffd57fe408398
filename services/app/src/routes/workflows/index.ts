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
  wakeSpentSessions,
} from '@workflow-service/database'
import { exportManifest, ManifestTooLargeError } from '@workflow-service/database/manifest'
import { ApiError, byTime, invalidFields, orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppHandlers, AppRules } from '../app-handlers.ts'
import { answerIds, answerPage } from '../paging.ts'
import { checkContent, checkStoredWorkflow } from './check-workflow.ts'
import { assertVisible, editHandler } from './edit-workflow.ts'
import { evaluationHandlers } from './evaluations.ts'
import { checkFile, checkSchedule, checkTrigger } from './part-rules.ts'
import { startHandlers } from './start-workflow.ts'
import { versionHandlers } from './versions.ts'

const WORKFLOWS = byTime('workflows')

/** Handlers for workflows, their triggers, files, people and schedules. */
export function workflowsHandlers(ctx: AppServiceContext) {
  const { db } = ctx
  const exportYaml = async (organizationId: string, options: { workflowId?: string }) => {
    const yaml = await exportManifest(db, organizationId, options).catch((error: unknown) => {
      if (!(error instanceof ManifestTooLargeError)) throw error
      throw new ApiError('manifest_too_large', 'The manifest is larger than 10 MiB. Export it with `wf export`.')
    })
    return { yaml: orNotFound(yaml, 'Workflow') }
  }
  return {
    ...versionHandlers(ctx),
    ...evaluationHandlers(ctx),
    ...startHandlers(ctx),
    listWorkflows: async ({ principal, query }) =>
      (await answerIds(query, (ids) => findWorkflowRows(db, principal, ids))) ??
      (await answerPage(query, WORKFLOWS, (page) =>
        listWorkflowRows(db, principal, { search: query.search ?? '', ...page }),
      )),
    createWorkflow: async (request) => {
      const { id, ...values } = request.body
      const create = editHandler(ctx, (edit) => createWorkflow(db, edit, values))
      return await create({ ...request, params: { workflow_id: id } })
    },
    getWorkflow: async ({ params, principal }) => {
      const workflow = orNotFound(await readWorkflowDetail(db, principal, params.workflow_id), 'Workflow')
      const { warnings } = await checkStoredWorkflow(ctx, principal.organizationId, workflow.id)
      return { ...workflow, warnings: [...warnings] }
    },
    saveWorkflow: editHandler(ctx, (edit, { body }) => saveWorkflow(db, edit, body)),
    deleteWorkflow: editHandler(ctx, (edit) => deleteWorkflow(db, edit)),
    duplicateWorkflow: editHandler(ctx, (edit, { body }) => duplicateWorkflow(db, edit, body)),
    exportWorkflow: async (request) => {
      await assertVisible(ctx, request)
      return await exportYaml(request.principal.organizationId, { workflowId: request.params.workflow_id })
    },
    exportManifest: ({ principal }) => exportYaml(principal.organizationId, {}),
    setWorkflowActive: editHandler(ctx, (edit, { body }) => setWorkflowActive(db, edit, body.is_active)),
    saveAutoRun: editHandler(ctx, (edit, { body }) => saveAutoRun(db, edit, body)),
    saveWorkflowAgent: editHandler(ctx, async (edit, { params, body }) => {
      const saved = await saveWorkflowAgent(db, edit, body)
      await wakeSpentSessions(db, edit.principal.organizationId, params.workflow_id)
      return saved
    }),
    listModels: async ({ principal }) => ({ data: await listModels(db, principal.organizationId) }),
    saveWorkflowUsers: editHandler(ctx, (edit, { body }) =>
      saveWorkflowUsers(db, edit, { userIds: body.user_ids, version: body.version }),
    ),
    saveTrigger: editHandler(ctx, (edit, { params, body }) => saveTrigger(db, edit, params.trigger_id, body)),
    deleteTrigger: editHandler(ctx, (edit, { params, query }) =>
      deleteTrigger(db, edit, params.trigger_id, query.version),
    ),
    getFile: async ({ params, principal }) =>
      orNotFound(await readAppFile(db, principal, params.workflow_id, params.file_id), 'File'),
    saveFile: editHandler(ctx, async (edit, request) => {
      const errors = await checkContent(ctx, request)
      if (errors.length > 0) throw invalidFields(errors)
      return await saveFile(db, edit, request.params.file_id, request.body)
    }),
    deleteFile: editHandler(ctx, (edit, { params, query }) => deleteFile(db, edit, params.file_id, query.version)),
    getReadiness: async ({ params, principal }) => {
      const workflow = orNotFound(await readReadiness(db, principal, params.workflow_id), 'Workflow')
      const { sources, unknownNames, warnings } = await checkStoredWorkflow(
        ctx,
        principal.organizationId,
        params.workflow_id,
      )
      const checks = READINESS_CODES.map((code) => ({ code, is_met: !workflow.violations[code] }))
      return {
        can_start: !workflow.isSuspended && checks.every((check) => check.is_met),
        checks,
        sources: [...sources],
        unknown_names: [...unknownNames],
        warnings: [...warnings],
      }
    },
  } satisfies Partial<AppHandlers>
}

export const workflowsRules = {
  saveTrigger: { body: checkTrigger },
  saveAutoRun: { body: checkSchedule },
  saveFile: { body: checkFile },
} satisfies AppRules
