import {
  deleteCase,
  findCase,
  findEvaluation,
  listCases,
  listEvaluations,
  saveCase,
  startEvaluation,
  stopEvaluation,
  type Viewer,
} from '@workflow-service/database'
import { orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { assertVisible, editHandler } from './edit-workflow.ts'

/** Handlers for the cases of workflows, and what tries them. Runners find it within a second. */
export function evaluationHandlers(ctx: AppServiceContext) {
  const { db } = ctx
  const read = async (viewer: Viewer, workflowId: string, id: string) =>
    orNotFound(await findEvaluation(db, viewer, workflowId, id), 'Evaluation')
  return {
    listCases: async (request) => {
      await assertVisible(ctx, request)
      return { data: await listCases(db, request.principal, request.params.workflow_id) }
    },
    getCase: async ({ params, principal }) =>
      orNotFound(await findCase(db, principal, params.workflow_id, params.case_id), 'Case'),
    saveCase: editHandler(ctx, (edit, { params, body }) => saveCase(db, edit, params.case_id, body)),
    deleteCase: editHandler(ctx, (edit, { params, query }) => deleteCase(db, edit, params.case_id, query.version)),
    listEvaluations: async (request) => {
      await assertVisible(ctx, request)
      return { data: await listEvaluations(db, request.principal, request.params.workflow_id) }
    },
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
