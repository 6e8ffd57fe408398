import type { OPERATIONS } from '@workflow-service/contract'
import type { Principal } from '@workflow-service/database'
import type { OperationHandlers, OperationRules } from '@workflow-service/service-kit'

export type PublicApiHandlers = OperationHandlers<typeof OPERATIONS, Principal>

/** Checks of one operation beyond its schemas. */
export type PublicApiRules<Id extends keyof typeof OPERATIONS> = OperationRules<(typeof OPERATIONS)[Id], Principal>
