import { describeRulesNeeded } from '@workflow-service/contract'
import { READINESS_CODES } from '@workflow-service/contract/app'
import {
  compareVersion,
  createWorkflow,
  type Db,
  deleteCase,
  deleteFile,
  deleteTrigger,
  deleteWorkflow,
  draftRunRules,
  duplicateWorkflow,
  findCase,
  findEvaluation,
  findWorkflowRows,
  listCases,
  listEvaluations,
  listModels,
  listVersions,
  listWorkflowRows,
  readAppFile,
  readReadiness,
  readWorkflowDetail,
  restoreVersion,
  saveAutoRun,
  saveCase,
  saveFile,
  saveTrigger,
  saveWorkflow,
  saveWorkflowAgent,
  saveWorkflowUsers,
  setWorkflowActive,
  startEvaluation,
  stopEvaluation,
  type Viewer,
  wakeSpentSessions,
} from '@workflow-service/database'
import { exportManifest, ManifestTooLargeError } from '@workflow-service/database/manifest'
import { ApiError, byTime, invalidFields, orNotFound, pageResponse } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { pageOfIds } from '../paging.ts'
import { checkContent, checkStoredWorkflow, checkUnsavedRules } from './check-workflow.ts'
import { assertVisible, editHandler } from './edit-workflow.ts'
import { startHandlers } from './start-workflow.ts'

export { workflowsRules } from './check-workflow.ts'

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
    ...caseHandlers(ctx),
    ...startHandlers(ctx),
    listWorkflows: async ({ principal, query }) =>
      (await pageOfIds(query, (ids) => findWorkflowRows(db, principal, ids))) ??
      (await pageResponse(query, WORKFLOWS, (page) =>
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

/** A handler that lists something of a workflow that the person sees. */
function listHandler<Row>(
  ctx: AppServiceContext,
  list: (db: Db, viewer: Viewer, workflowId: string) => Promise<Row[]>,
) {
  return async (request: Parameters<typeof assertVisible>[1]) => {
    await assertVisible(ctx, request)
    return { data: await list(ctx.db, request.principal, request.params.workflow_id) }
  }
}

const NO_WARNING = { message: 'Rules take the place of the task', excerpt: 'what the task says' }

/** Handlers for the versions of workflows, and for rules that are not saved. */
function versionHandlers(ctx: AppServiceContext) {
  const { db } = ctx
  return {
    listWorkflowVersions: listHandler(ctx, listVersions),
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
      const comment = `rules_needed: ${describeRulesNeeded(message, excerpt)}`
      const refusal = { code: 'rules_needed', comment, sentence: excerpt } as const
      return { content: orNotFound(await draftRunRules(db, organizationId, workflowId, refusal), 'Workflow') }
    },
    checkRules: async (request) => {
      await assertVisible(ctx, request)
      const errors = await checkUnsavedRules(ctx, request.principal.organizationId, request.body.content)
      return { errors: errors.map(({ line = null, message }) => ({ line, message })) }
    },
  } satisfies Partial<AppHandlers>
}

/** Handlers for the cases of workflows, and what tries them. Runners find it within a second. */
function caseHandlers(ctx: AppServiceContext) {
  const { db } = ctx
  const read = async (viewer: Viewer, workflowId: string, id: string) =>
    orNotFound(await findEvaluation(db, viewer, workflowId, id), 'Evaluation')
  return {
    listCases: listHandler(ctx, listCases),
    getCase: async ({ params, principal }) =>
      orNotFound(await findCase(db, principal, params.workflow_id, params.case_id), 'Case'),
    saveCase: editHandler(ctx, (edit, { params, body }) => saveCase(db, edit, params.case_id, body)),
    deleteCase: editHandler(ctx, (edit, { params, query }) => deleteCase(db, edit, params.case_id, query.version)),
    listEvaluations: listHandler(ctx, listEvaluations),
    startEvaluation: editHandler(ctx, async (edit, { params, principal, body }) => {
      await startEvaluation(db, edit, body)
      return await read(principal, params.workflow_id, body.id)
    }),
    getEvaluation: ({ params, principal }) => read(principal, params.workflow_id, params.evaluation_id),
    stopEvaluation: editHandler(ctx, async (edit, { params, principal }) => {
      await stopEvaluation(db, edit, params.evaluation_id)
      return await read(principal, params.workflow_id, params.evaluation_id)
    }),
  } satisfies Partial<AppHandlers>
}
