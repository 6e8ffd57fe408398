import {
  type AppStartOutcome,
  findTrial,
  recordAppStart,
  recordTrial,
  type ScheduledStartOutcome,
  startScheduledNow,
} from '@workflow-service/database'
import { ApiError, notFound, organizationSuspended, orNotFound, startRefused } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { AppHandlers, AppRequestOf } from '../app-handlers.ts'
import { editContextOf } from './edit-workflow.ts'

/** Handlers that start a workflow by the person, as the public API or its schedule does, or only try it. */
export function startHandlers({ db, sessionNotifier, changeNotices }: AppServiceContext) {
  /** Publishes the session of an accepted start, without waiting for it. @throws ApiError for a refused one. */
  const announce = (
    { principal, requestId, body }: AppRequestOf<'startWorkflow' | 'startScheduled'>,
    outcome: AppStartOutcome | ScheduledStartOutcome,
  ) => {
    if (outcome.kind !== 'accepted' && outcome.kind !== 'replayed') throw refusalOf(outcome.kind)
    if (outcome.kind === 'accepted') {
      sessionNotifier.notify(outcome.sessionId, requestId)
      changeNotices.add(principal.organizationId, 'runs', 'sessions', 'workflows')
    }
    return { run_id: body.id, session_id: outcome.sessionId }
  }
  return {
    startWorkflow: async (request) => {
      const { id: runId, session_id: sessionId, context } = request.body
      const start = { ...editContextOf(request), runId, sessionId, context, trace: request.trace }
      return announce(request, await recordAppStart(db, start))
    },
    startScheduled: async (request) =>
      announce(request, await startScheduledNow(db, editContextOf(request), request.body.id)),
    /** A runner finds the trial within a second. */
    tryWorkflow: async ({ params, principal, body }) => {
      const trial = { id: body.id, workflowId: params.workflow_id, userId: principal.userId }
      const { session_id: sessionId, context, rules = null } = body
      const outcome = await recordTrial(db, principal, { ...trial, sessionId, context, rules })
      if (outcome === 'organization_suspended' || outcome === 'id_taken') throw refusalOf(outcome)
      if (outcome !== 'accepted') throw notFound(outcome === 'session_not_found' ? 'Session' : 'Workflow')
      return orNotFound(await findTrial(db, principal, trial), 'Trial')
    },
    getTrial: async ({ params, principal }) => {
      const trial = { id: params.trial_id, workflowId: params.workflow_id, userId: principal.userId }
      return orNotFound(await findTrial(db, principal, trial), 'Trial')
    },
  } satisfies Partial<AppHandlers>
}

function refusalOf(refusal: Exclude<AppStartOutcome['kind'], 'accepted' | 'replayed'>): ApiError {
  switch (refusal) {
    case 'id_taken':
      return new ApiError('id_taken', 'This id is taken. Choose a new one.')
    case 'organization_suspended':
      return organizationSuspended()
    default:
      return startRefused(refusal)
  }
}
