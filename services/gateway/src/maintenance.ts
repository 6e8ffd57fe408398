import { deleteOldIdempotencyKeys } from '@workflow-service/database'
import { type MaintenanceTask, runBatches } from '@workflow-service/service-kit'
import type { GatewayContext } from './gateway-context.ts'

const BATCH_SIZE = 2_000

/** What a gateway does on a timer. */
export const MAINTENANCE: readonly MaintenanceTask<GatewayContext>[] = [
  {
    name: 'delete old idempotency keys',
    intervalMs: 60_000,
    isDelayed: true,
    statements: ['deleteOldIdempotencyKeys'],
    // Without a pause: in the interval, a busy gateway records many batches of keys, and as many become old.
    run: ({ db }, signal) =>
      runBatches({ signal }, async () => (await deleteOldIdempotencyKeys(db, BATCH_SIZE)) === BATCH_SIZE),
  },
  {
    name: 'write when API keys were last used',
    intervalMs: 30_000,
    isDelayed: true,
    statements: ['touchApiKeys'],
    run: ({ apiKeyUsage }) => apiKeyUsage.write(),
  },
]
