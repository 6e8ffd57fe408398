import { findTrial, recordTrial, viewerOf } from '@workflow-service/database'
import { ApiError, notFound, orNotFound } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppHandlers } from '../app-handlers.ts'

/** Records a text to try a workflow with. A runner finds it within a second. */
export function tryWorkflow({ db }: Pick<AppServiceContext, 'db'>): AppHandlers['tryWorkflow'] {
  return async ({ params, principal, body }) => {
    const viewer = viewerOf(principal)
    const trial = { id: body.id, workflowId: params.workflow_id, userId: principal.userId }
    const outcome = await recordTrial(db, viewer, {
      ...trial,
      sessionId: body.session_id,
      context: body.context,
      rules: body.rules ?? null,
    })
    if (outcome === 'organization_suspended') throw new ApiError(outcome, 'The organization is suspended.')
    if (outcome !== 'accepted') throw notFound(outcome === 'session_not_found' ? 'Session' : 'Workflow')
    return { body: orNotFound(await findTrial(db, viewer, trial), 'Trial') }
  }
}

/** Answers with a trial of the person. */
export function getTrial({ db }: Pick<AppServiceContext, 'db'>): AppHandlers['getTrial'] {
  return async ({ params, principal }) => {
    const { workflow_id: workflowId, trial_id: id } = params
    const trial = await findTrial(db, viewerOf(principal), { id, workflowId, userId: principal.userId })
    return { body: orNotFound(trial, 'Trial') }
  }
}
