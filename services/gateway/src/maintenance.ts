import { deleteOldIdempotencyKeys } from '@workflow-service/database'
import type { MaintenanceTask } from '@workflow-service/service-kit'
import type { GatewayContext } from './gateway-context.ts'

const DELETE_KEYS_BATCH_SIZE = 2_000

/** What a gateway does on a timer. */
export const MAINTENANCE: readonly MaintenanceTask<GatewayContext>[] = [
  {
    name: 'delete old idempotency keys',
    intervalMs: 60_000,
    isDelayed: true,
    statements: ['deleteOldIdempotencyKeys'],
    run: async ({ db }, signal) => {
      while (
        !signal.aborted &&
        (await deleteOldIdempotencyKeys(db, DELETE_KEYS_BATCH_SIZE)) === DELETE_KEYS_BATCH_SIZE
      );
    },
  },
  {
    name: 'write when API keys were last used',
    intervalMs: 30_000,
    isDelayed: true,
    statements: ['touchApiKeys'],
    run: ({ apiKeyUsage }) => apiKeyUsage.write(),
  },
]
