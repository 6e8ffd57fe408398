import { hash } from 'node:crypto'
import { newId } from '@workflow-service/database'
import { ApiError, startRefused } from '@workflow-service/service-kit'
import type { GatewayContext } from '../gateway-context.ts'
import type { PublicApiHandlers } from './operation-handlers.ts'

/**
 * `POST /v1/workflows/{workflow_id}/start` (contract README, "Starts and sessions"): answers 202 once the start is
 * committed, then notifies the runners.
 */
export function startWorkflow({
  starts,
  sessionNotifier,
  changeNotices,
}: Pick<GatewayContext, 'starts' | 'sessionNotifier' | 'changeNotices'>): PublicApiHandlers['startWorkflow'] {
  return async ({ params, body, headers, principal, requestId, trace }) => {
    const { workflow_id: workflowId } = params
    const { session_id: sessionId = null, context } = body
    const key = headers['Idempotency-Key']
    // Of the values rather than the text: another spelling of the same body is the same request.
    const hashRequest = () => hash('sha256', JSON.stringify([workflowId, sessionId, context]), 'buffer')
    const outcome = await starts.record(principal.organizationId, {
      startId: newId(),
      workflowId,
      sessionId,
      newSessionId: newId(),
      context,
      apiKeyId: principal.apiKeyId,
      requestId,
      trace,
      idempotency: key === undefined ? null : { key, requestSha256: hashRequest() },
    })
    if (outcome.kind === 'idempotency_conflict') {
      const message =
        'This Idempotency-Key was used for another request within the last 24 hours. Use a new one for each start.'
      throw new ApiError('idempotency_conflict', message)
    }
    if (outcome.kind !== 'accepted' && outcome.kind !== 'replayed') throw startRefused(outcome.kind)
    if (outcome.kind === 'accepted') {
      sessionNotifier.notify(outcome.sessionId, requestId)
      changeNotices.add(principal.organizationId, 'runs', 'sessions')
    }
    return { body: { id: outcome.startId, workflow_id: workflowId, session_id: outcome.sessionId } }
  }
}
