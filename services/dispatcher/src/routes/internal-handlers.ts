import type { INTERNAL_OPERATIONS } from '@workflow-service/contract'
import type { OperationHandlers } from '@workflow-service/service-kit'

/** A handler for each operation of the internal API. The bearer token names no principal. */
export type InternalHandlers = OperationHandlers<typeof INTERNAL_OPERATIONS, void>

/** A call of an operation, by a request or within the process. */
export type CallOf<Id extends keyof InternalHandlers> = Pick<
  Parameters<InternalHandlers[Id]>[0],
  'params' | 'headers' | 'body' | 'requestId' | 'trace'
>
