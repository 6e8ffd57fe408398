import { cancelQueuedRuns, cancelRun, operatorOf } from '@workflow-service/database'
import { ApiError, notFound } from '@workflow-service/service-kit'
import type { DispatcherContext } from '../dispatcher-context.ts'
import type { InternalHandlers } from './internal-handlers.ts'
import { readActor } from './read-actor.ts'

/** Cancels a run of the organization. The caller of the internal API sees every run. */
export function cancelOneRun({ db, changeNotices }: DispatcherContext): InternalHandlers['cancelRun'] {
  return async (request) => {
    const { organization_id: organizationId, run_id: runId } = request.params
    const by = readActor(organizationId, request) ?? operatorOf(organizationId)
    const outcome = await cancelRun(db, { organizationId, memberId: null }, runId, by)
    if (outcome.kind === 'not_found') throw notFound('Run')
    if (outcome.kind === 'ended') throw new ApiError('run_ended', 'This run has ended already.')
    changeNotices.add(organizationId, 'runs', 'sessions')
    return { status: 204 }
  }
}

export function cancelQueue({ db, changeNotices }: DispatcherContext): InternalHandlers['cancelQueuedRuns'] {
  return async (request) => {
    const { organization_id: organizationId } = request.params
    const by = readActor(organizationId, request) ?? operatorOf(organizationId)
    const { cancelled, isMore } = await cancelQueuedRuns(db, { organizationId, memberId: null }, request.body, by)
    changeNotices.add(organizationId, 'runs', 'sessions')
    return { status: 200, body: { cancelled, is_more: isMore } }
  }
}
