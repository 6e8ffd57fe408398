import {
  type AppStartOutcome,
  recordAppStart,
  type ScheduledStartOutcome,
  startScheduledNow,
} from '@workflow-service/database'
import { ApiError, startRefused } from '@workflow-service/service-kit'
import type { AppServiceContext } from '../../app-service-context.ts'
import type { Principal } from '../../auth/principal.ts'
import type { AppHandlers } from '../app-handlers.ts'
import { editContextOf } from './edit-workflow.ts'

/** Starts a workflow as the public API does, by the person, and publishes the session without waiting for it. */
export function startWorkflow(ctx: AppServiceContext): AppHandlers['startWorkflow'] {
  return async (request) => {
    const { body, principal, requestId, trace } = request
    const outcome = await recordAppStart(ctx.db, {
      ...editContextOf(request),
      runId: body.id,
      sessionId: body.session_id,
      context: body.context,
      trace,
    })
    return { body: { run_id: body.id, session_id: announce(ctx, principal, requestId, outcome) } }
  }
}

/** Starts a workflow as its schedule does, by the person. */
export function startScheduled(ctx: AppServiceContext): AppHandlers['startScheduled'] {
  return async (request) => {
    const { body, principal, requestId } = request
    const outcome = await startScheduledNow(ctx.db, editContextOf(request), body.id)
    return { body: { run_id: body.id, session_id: announce(ctx, principal, requestId, outcome) } }
  }
}

/** Publishes the session of an accepted start, and returns its id. @throws ApiError for a refused one. */
function announce(
  ctx: AppServiceContext,
  { organizationId }: Pick<Principal, 'organizationId'>,
  requestId: string,
  outcome: AppStartOutcome | ScheduledStartOutcome,
): string {
  if (outcome.kind !== 'accepted' && outcome.kind !== 'replayed') throw refusalOf(outcome.kind)
  if (outcome.kind === 'accepted') {
    ctx.sessionNotifier.notify(outcome.sessionId, requestId)
    ctx.changeNotices.add(organizationId, 'runs', 'sessions', 'workflows')
  }
  return outcome.sessionId
}

function refusalOf(refusal: Exclude<AppStartOutcome['kind'], 'accepted' | 'replayed'>): ApiError {
  switch (refusal) {
    case 'id_taken':
      return new ApiError('id_taken', 'This id is that of another run. Choose a new one.')
    case 'organization_suspended':
      return new ApiError('organization_suspended', 'The organization is suspended.')
    default:
      return startRefused(refusal)
  }
}
