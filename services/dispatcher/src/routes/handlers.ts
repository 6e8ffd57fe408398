import type { INTERNAL_OPERATIONS } from '@workflow-service/contract'
import type { OperationHandlers, OperationRules } from '@workflow-service/service-kit'

/** A handler for each operation of the internal API. The bearer token names no principal. */
export type InternalHandlers = OperationHandlers<typeof INTERNAL_OPERATIONS, void>

/** Checks of one operation beyond its schemas. */
export type InternalRules<Id extends keyof typeof INTERNAL_OPERATIONS> = OperationRules<
  (typeof INTERNAL_OPERATIONS)[Id],
  void
>
