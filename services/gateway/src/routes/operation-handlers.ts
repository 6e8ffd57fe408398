import type { OPERATIONS } from '@workflow-service/contract'
import type { Principal } from '@workflow-service/database'
import type { OperationHandlers } from '@workflow-service/service-kit'

export type PublicApiHandlers = OperationHandlers<typeof OPERATIONS, Principal>
