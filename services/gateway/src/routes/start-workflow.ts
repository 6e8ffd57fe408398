import { createHash } from 'node:crypto'
import type { ErrorCode, WorkflowStartOut } from '@workflow-service/contract'
import { newId, type StartRefusal } from '@workflow-service/database'
import { ApiError, invalidFields, notFound } from '@workflow-service/service-kit'
import type { AppContext } from '../app-context.ts'
import type { PublicApiHandlers } from '../operation-handlers.ts'

type StartRequest = Parameters<PublicApiHandlers['startWorkflow']>[0]
type ConflictCode = Extract<StartRefusal, ErrorCode>

const CONFLICTS: Record<ConflictCode, string> = {
  workflow_inactive: 'The workflow is inactive. Activate it, then start it again.',
  no_active_api_trigger:
    'The workflow has no active trigger whose source is "api". Add one, or activate the one it has.',
  no_users_with_access: 'No user has access to the workflow. Give access to at least one.',
  session_closed: 'The session is closed. Leave session_id out to start in a new one.',
  idempotency_conflict:
    'This Idempotency-Key was used for another request within the last 24 hours. Use a new one for each start.',
}

/** `POST /v1/workflows/{workflow_id}/start` (contract 4.4): 202 once the start is committed; the wake-up follows. */
export function startWorkflow({
  starts,
  wakeUps,
}: Pick<AppContext, 'starts' | 'wakeUps'>): PublicApiHandlers['startWorkflow'] {
  return async (request) => {
    const { params, body, headers, principal, requestId } = request
    const outcome = await starts.record(principal.organizationId, {
      startId: newId(),
      workflowId: params.workflow_id,
      sessionId: body.session_id ?? null,
      newSessionId: newId(),
      context: body.context,
      apiKeyId: principal.apiKeyId,
      requestId,
      idempotency:
        headers['Idempotency-Key'] === undefined
          ? null
          : { key: headers['Idempotency-Key'], requestSha256: hashRequest(request) },
    })
    if (outcome.kind !== 'accepted' && outcome.kind !== 'replayed') throw toError(outcome.kind)
    if (outcome.kind === 'accepted') wakeUps.send(outcome.sessionId, requestId)
    const answer: WorkflowStartOut = {
      id: outcome.startId,
      workflow_id: params.workflow_id,
      session_id: outcome.sessionId,
    }
    return JSON.stringify(answer)
  }
}

/** What makes two requests the same for an Idempotency-Key: what they ask for, not how it is written. */
function hashRequest({ params, body }: Pick<StartRequest, 'params' | 'body'>): Buffer {
  const asked = JSON.stringify([params.workflow_id, body.session_id ?? null, body.context])
  return createHash('sha256').update(asked, 'utf8').digest()
}

function toError(refusal: StartRefusal | 'session_busy'): ApiError {
  switch (refusal) {
    case 'workflow_not_found':
      return notFound('Workflow')
    case 'session_not_found':
      return invalidFields([
        { field: 'session_id', code: 'not_found', message: 'must be an open session of your organization' },
      ])
    case 'session_busy':
      return new ApiError('service_unavailable', 'The session is busy; try again in a moment.', {
        headers: { 'Retry-After': '1' },
      })
    default:
      return new ApiError(refusal, CONFLICTS[refusal])
  }
}
