import { createHash } from 'node:crypto'
import type { WorkflowStartOut } from '@workflow-service/contract'
import { newId } from '@workflow-service/database'
import { ApiError, startRefused } from '@workflow-service/service-kit'
import type { GatewayContext } from '../gateway-context.ts'
import type { PublicApiHandlers } from './operation-handlers.ts'

type StartRequest = Parameters<PublicApiHandlers['startWorkflow']>[0]
/**
 * `POST /v1/workflows/{workflow_id}/start` (contract README, "Starts and sessions"): answers 202 once the start is
 * committed, then notifies the runners.
 */
export function startWorkflow({
  starts,
  sessionNotifier,
  changeNotices,
}: Pick<GatewayContext, 'starts' | 'sessionNotifier' | 'changeNotices'>): PublicApiHandlers['startWorkflow'] {
  return async (request) => {
    const { params, body, headers, principal, requestId, trace } = request
    const idempotencyKey = headers['Idempotency-Key']
    const outcome = await starts.record(principal.organizationId, {
      startId: newId(),
      workflowId: params.workflow_id,
      sessionId: body.session_id ?? null,
      newSessionId: newId(),
      context: body.context,
      apiKeyId: principal.apiKeyId,
      requestId,
      trace,
      idempotency:
        idempotencyKey === undefined ? null : { key: idempotencyKey, requestSha256: hashStartRequest(request) },
    })
    if (outcome.kind === 'idempotency_conflict') throw idempotencyConflict()
    if (outcome.kind !== 'accepted' && outcome.kind !== 'replayed') throw startRefused(outcome.kind)
    if (outcome.kind === 'accepted') {
      sessionNotifier.notify(outcome.sessionId, requestId)
      changeNotices.add(principal.organizationId, 'runs', 'sessions')
    }
    const answer: WorkflowStartOut = {
      id: outcome.startId,
      workflow_id: params.workflow_id,
      session_id: outcome.sessionId,
    }
    return JSON.stringify(answer)
  }
}

/** Hashes the values of a request rather than its text: another spelling of the same body is the same request. */
function hashStartRequest({ params, body }: Pick<StartRequest, 'params' | 'body'>): Buffer {
  const values = JSON.stringify([params.workflow_id, body.session_id ?? null, body.context])
  return createHash('sha256').update(values, 'utf8').digest()
}

function idempotencyConflict(): ApiError {
  const message =
    'This Idempotency-Key was used for another request within the last 24 hours. Use a new one for each start.'
  return new ApiError('idempotency_conflict', message)
}
