import { ERROR_CODES, type ErrorCode, toTraceHeaders } from '@workflow-service/contract'
import { ApiError, serviceUnavailable, type Tracing } from '@workflow-service/service-kit'
import {
  createInternalClient,
  InternalCallError,
  type InternalClient,
  type InternalClientOptions,
  type InternalRequest,
  type InternalResponse,
} from '@workflow-service/service-kit/internal-client'

/** Calls the dispatcher on behalf of a person. */
export function createDispatcherClient({
  tracing,
  ...options
}: InternalClientOptions & { tracing: Pick<Tracing, 'current'> }) {
  const client = createInternalClient({ ...options, headersOf: () => toTraceHeaders(tracing.current()) })
  return {
    /**
     * Calls an operation once and resolves to the body of its response.
     * @throws ApiError with the dispatcher's code, message, details and further members; 503 if it does not answer, or
     *   could not read the request.
     */
    call: async <Id extends Parameters<InternalClient['call']>[0]>(
      id: Id,
      request: InternalRequest<Id>,
    ): Promise<InternalResponse<Id>['body']> => {
      try {
        return (await client.call(id, request)).body
      } catch (error) {
        throw error instanceof InternalCallError ? toApiError(error) : error
      }
    },
  }
}

function toApiError(cause: InternalCallError): ApiError {
  const { status, body } = cause
  if (status === undefined) {
    return serviceUnavailable('The dispatcher does not answer; try again in a moment.', cause)
  }
  // The application's request to the dispatcher did not arrive whole: it is not the person's that is wrong.
  const isUnread = body?.code === 'invalid_request'
  if (!body || isUnread || !Object.hasOwn(ERROR_CODES, body.code) || (status >= 500 && body.code !== 'source_paused')) {
    return serviceUnavailable(body?.message ?? 'The dispatcher cannot do this now; try again in a moment.', cause)
  }
  const { code, message, request_id: _requestId, details, ...extra } = body
  return new ApiError(code as ErrorCode, message, { extra, ...(details ? { details } : {}) })
}
