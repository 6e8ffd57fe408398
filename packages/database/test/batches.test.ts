import { afterEach, beforeEach, expect, test } from '@jest/globals'
import type { PoolClient } from 'pg'
import {
  deleteOldDeliveries,
  deleteOldIdempotencyKeys,
  markAbandonedDeliveries,
  newId,
  recordStarts,
} from '../src/index.ts'
import { newStart, useStartable } from './support/start-fixtures.ts'
import { onConnection } from './support/on-connection.ts'

// With an estimate of one row, PostgreSQL may join a batch to its table by evaluating the batch again for each row. It
// then skips the rows that are already locked, and finds others. These settings leave no other join.
const EVALUATE_BATCHES_FOR_EACH_ROW = ['hashjoin', 'mergejoin', 'hashagg', 'sort', 'material', 'memoize']
  .map((way) => `SET enable_${way} = off`)
  .join('; ')

const ROWS = 30
const BATCH_SIZE = 20

const acme = useStartable()
let client: PoolClient
beforeEach(async () => {
  client = await acme.db.pool.connect()
  await client.query(EVALUATE_BATCHES_FOR_EACH_ROW)
})
afterEach(() => {
  client.release(true)
})

async function recordDeliveries(outcome: string): Promise<void> {
  await client.query(
    `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, status, request_body, created_at, finished_at)
     SELECT gen_random_uuid(), $1, $2, 'payload', $3, CASE $3 WHEN 'accepted' THEN 200 END, '{}',
       now() - interval '2 days', CASE $3 WHEN 'accepted' THEN now() END
     FROM generate_series(1, ${ROWS})`,
    [acme.organizationId, newId(), outcome],
  )
}

test('old entries of the log are deleted in batches of the given size with every plan', async () => {
  await recordDeliveries('accepted')
  const remove = (): Promise<number> =>
    deleteOldDeliveries(onConnection(client), { olderThanDays: 1, batchSize: BATCH_SIZE })
  expect([await remove(), await remove(), await remove()]).toEqual([BATCH_SIZE, ROWS - BATCH_SIZE, 0])
})

test('abandoned deliveries become unknown in batches of the given size with every plan', async () => {
  await recordDeliveries('in_flight')
  const giveUp = (): Promise<number> =>
    markAbandonedDeliveries(onConnection(client), { olderThanMs: 120_000, batchSize: BATCH_SIZE })
  expect([await giveUp(), await giveUp(), await giveUp()]).toEqual([BATCH_SIZE, ROWS - BATCH_SIZE, 0])
})

test('old Idempotency-Keys are deleted in batches of the given size with every plan', async () => {
  await recordStarts(
    acme.db,
    Array.from({ length: ROWS }, (_, n) => ({
      organizationId: acme.organizationId,
      start: newStart(acme, { idempotency: { key: `key-${n}`, requestSha256: Buffer.alloc(32) } }),
    })),
  )
  await client.query(`UPDATE idempotency_keys SET created_at = now() - interval '2 days'`)
  const forget = (): Promise<number> => deleteOldIdempotencyKeys(onConnection(client), BATCH_SIZE)
  expect([await forget(), await forget(), await forget()]).toEqual([BATCH_SIZE, ROWS - BATCH_SIZE, 0])
})
