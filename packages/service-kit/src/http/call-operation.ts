import type { TraceContext } from '@workflow-service/contract'
import type { Logger } from '../logger.ts'
import { type CheckedParts, type HttpOperation, type OperationRules, requestChecker } from './check-request.ts'
import { bodyTooLarge, toErrorResponse, toReportedError } from './errors.ts'
import type { JsonBody } from './json-body.ts'

/** What a request to an operation has. */
export interface OperationCall {
  readonly params: Readonly<Record<string, string>>
  readonly body: object
  readonly requestId: string
  readonly trace: TraceContext | null
}

/** The response to it, with the headers of its handler. */
export interface OperationResult {
  readonly status: number
  readonly body: object
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Creates a function that does what a request to the operation does, for a caller in the same process: the same
 * checks, handler and error bodies, without a token, a slot or a log line of the request. It never rejects.
 */
export function createOperationCall<Operation extends HttpOperation>(options: {
  operation: Operation
  handler: (request: CheckedParts<Operation> & Pick<OperationCall, 'requestId' | 'trace'>) => Promise<OperationResult>
  rules: OperationRules<Operation, undefined>
  /**
   * The body goes through its text of at most so many bytes, so that caller and handler share no object. Absent: the
   * caller keeps no reference to the body.
   */
  maxBytes?: number
  logger: Logger
  isDatabaseUnavailable: (error: unknown) => boolean
}): (call: OperationCall) => Promise<OperationResult> {
  const { operation, handler, rules, maxBytes, ...reporting } = options
  const check = requestChecker(operation, rules)
  return async ({ params, body, requestId, trace }) => {
    try {
      const parts = check({
        req: { url: operation.path, headersDistinct: {} },
        params,
        body: maxBytes === undefined ? { value: body, text: '' } : copyOf(body, maxBytes),
        principal: undefined,
      })
      return await handler({ ...parts, requestId, trace })
    } catch (thrown) {
      const error = toReportedError(thrown, { ...reporting, requestId })
      return { status: error.status, body: toErrorResponse(error, requestId), headers: {} }
    }
  }
}

/** @throws ApiError 400 `body_too_large` */
function copyOf(body: object, maxBytes: number): JsonBody {
  const text = JSON.stringify(body)
  if (Buffer.byteLength(text) > maxBytes) throw bodyTooLarge(maxBytes)
  return { value: JSON.parse(text), text }
}
