import {
  deleteCase,
  findCase,
  findEvaluation,
  listCases,
  listEvaluations,
  readWorkflowDetail,
  saveCase,
  startEvaluation,
  stopEvaluation,
  viewerOf,
} from '@workflow-service/database'
import { orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { Principal } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { editContextOf, withEditErrors } from './edit-workflow.ts'

/** Handlers for the cases of workflows, and what tries them. Runners find it within a second. */
export function evaluationHandlers(ctx: AppServiceContext) {
  const { db } = ctx
  const readEvaluation = async (principal: Principal, workflowId: string, id: string) => ({
    body: orNotFound(await findEvaluation(db, viewerOf(principal), workflowId, id), 'Evaluation'),
  })
  const assertVisible = async (principal: Principal, workflowId: string) =>
    void orNotFound(await readWorkflowDetail(db, viewerOf(principal), workflowId), 'Workflow')
  return {
    listCases: async ({ params, principal }) => {
      await assertVisible(principal, params.workflow_id)
      return { body: { data: await listCases(db, viewerOf(principal), params.workflow_id) } }
    },
    getCase: async ({ params, principal }) => ({
      body: orNotFound(await findCase(db, viewerOf(principal), params.workflow_id, params.case_id), 'Case'),
    }),
    saveCase: async (request) => ({
      body: await withEditErrors(
        ctx,
        request,
        saveCase(db, editContextOf(request), request.params.case_id, request.body),
      ),
    }),
    deleteCase: async (request) => {
      const { params, query } = request
      await withEditErrors(ctx, request, deleteCase(db, editContextOf(request), params.case_id, query.version))
      return { status: 204 }
    },
    listEvaluations: async ({ params, principal }) => {
      await assertVisible(principal, params.workflow_id)
      return { body: { data: await listEvaluations(db, viewerOf(principal), params.workflow_id) } }
    },
    startEvaluation: async (request) => {
      const { params, principal, body } = request
      await withEditErrors(ctx, request, startEvaluation(db, editContextOf(request), body))
      return await readEvaluation(principal, params.workflow_id, body.id)
    },
    getEvaluation: async ({ params, principal }) =>
      await readEvaluation(principal, params.workflow_id, params.evaluation_id),
    stopEvaluation: async (request) => {
      const { params, principal } = request
      await withEditErrors(ctx, request, stopEvaluation(db, editContextOf(request), params.evaluation_id))
      return await readEvaluation(principal, params.workflow_id, params.evaluation_id)
    },
  } satisfies Partial<AppHandlers>
}
