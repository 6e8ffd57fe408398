import type { INTERNAL_OPERATIONS } from '@workflow-service/contract'
import type { OperationHandlers } from '@workflow-service/service-kit'

/** A handler for each operation of the internal API. The bearer token names no principal. */
export type InternalHandlers = OperationHandlers<typeof INTERNAL_OPERATIONS, void>
