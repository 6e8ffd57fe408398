import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { createDatabase, type Database, migrate, newId } from '@workflow-service/database'
import type { RunningService } from '@workflow-service/service-kit'
import {
  createCapturedLogger,
  type CustomerEndpoint,
  startCustomerEndpoint,
  type PrivatePostgres,
  startPostgres,
  untilLocked,
  waitUntil,
} from '@workflow-service/testkit'
import { readDispatcherConfig } from '../src/config.ts'
import { startDispatcher } from '../src/start-dispatcher.ts'
import {
  callDispatcher,
  type InternalResponse,
  PAYLOAD,
  refusal,
  sendAll,
  sourceIn,
  sourcePath,
  testEnv,
} from './support/test-dispatcher.ts'

const organizationId = newId()
const sourceId = newId()

let postgres: PrivatePostgres
let db: Database
let endpoint: CustomerEndpoint
let dispatcher: RunningService

beforeAll(async () => {
  postgres = await startPostgres()
  await migrate({ databaseUrl: postgres.url })
  db = createDatabase({ url: postgres.url, applicationName: 'test', maxConnections: 2 })
  await db.prisma.organization.create({ data: { id: organizationId, name: 'Acme' } })
  endpoint = await startCustomerEndpoint()
  const { logger } = createCapturedLogger()
  dispatcher = await startDispatcher(readDispatcherConfig(testEnv(postgres.url)), { logger })
  const path = sourcePath(organizationId, sourceId)
  await callDispatcher(dispatcher.url, 'PUT', path, sourceIn({ endpoint_url: endpoint.url }))
})
afterAll(async () => {
  await dispatcher.stop()
  await db.close()
  await endpoint.close()
  await postgres.stop()
})
beforeEach(() => endpoint.reset())

const send = (id: string): Promise<InternalResponse> =>
  callDispatcher(dispatcher.url, 'PUT', `/internal/deliveries/${id}`, {
    organization_id: organizationId,
    source_id: sourceId,
    payload: PAYLOAD,
  })

describe('while the database is unavailable', () => {
  test('what was sent is answered at once and recorded later; what was not is answered 503, and a repeated call sends it', async () => {
    const [sent, refused] = [newId(), newId()]
    endpoint.answerWith(async () => {
      await postgres.kill()
      return { status: 200, body: 'booked' }
    })
    const first = await send(sent)
    expect(first).toMatchObject({ status: 200, body: { outcome: 'accepted', status: 200, answer: 'booked' } })
    // A repeated call is answered from memory.
    expect((await send(sent)).body).toEqual(first.body)
    const response = await send(refused)
    expect(response).toMatchObject(refusal(503, 'service_unavailable'))
    expect(response.headers.get('retry-after')).toBe('1')
    expect((await fetch(`${dispatcher.url}/readyz`)).status).toBe(503)
    expect(endpoint.requests).toHaveLength(1)

    endpoint.answerWith({ status: 204 })
    await postgres.restart()
    const recorded = async (): Promise<boolean> =>
      (await db.prisma.delivery.findUnique({ where: { id: sent } }))?.outcome === 'accepted'
    await waitUntil(recorded, { timeoutMs: 20_000 })
    expect((await send(sent)).body).toMatchObject({ outcome: 'accepted', status: 200, answer: 'booked' })
    expect(await waitUntil(async () => (await send(refused)).body.outcome)).toBe('accepted')
    expect(endpoint.requests).toHaveLength(2)
  })

  test('claims that PostgreSQL makes after their callers were answered 503 are removed; a repeated call sends each', async () => {
    const ids = [newId(), newId()]
    // The first removal fails, as while PostgreSQL is still busy with what has waited for it.
    await db.pool.query(`CREATE SEQUENCE removals;
      CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('removals') = 1 THEN RAISE EXCEPTION 'busy' USING ERRCODE = '57014'; END IF;
        RETURN OLD;
      END $$;
      CREATE TRIGGER fail_once BEFORE DELETE ON deliveries FOR EACH ROW EXECUTE FUNCTION fail_once()`)
    const { rows } = await db.pool.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'dispatcher%'`,
    )
    for (const { pid } of rows) process.kill(pid, 'SIGSTOP')
    const body = { organization_id: organizationId, source_id: sourceId, payload: PAYLOAD }
    const together = ids.map((delivery_id) => ({ delivery_id, body }))
    const refused = sendAll(dispatcher.url, together).finally(() =>
      rows.forEach(({ pid }) => process.kill(pid, 'SIGCONT')),
    )
    expect(await refused).toMatchObject(
      ids.map(() => ({ status: 503, body: { error: { code: 'service_unavailable' } } })),
    )
    const outcomes = ids.map((id) => waitUntil(async () => (await send(id)).body.outcome, { timeoutMs: 50_000 }))
    expect(await Promise.all(outcomes)).toEqual(['accepted', 'accepted'])
    expect(endpoint.requests).toHaveLength(2)
  })

  test('a payload that waited too long for others is answered 503 and not recorded; a repeated call sends it', async () => {
    const [ahead, behind] = [newId(), newId()]
    const blocker = await db.pool.connect()
    await blocker.query('BEGIN; LOCK TABLE deliveries IN EXCLUSIVE MODE')
    const sendingAhead = send(ahead)
    await untilLocked(db.pool)
    const sendingBehind = send(behind)
    const bothInFlight = /^webhook_deliveries_in_flight\{service="dispatcher"\} 2$/m
    await waitUntil(async () => bothInFlight.test(await (await fetch(`${dispatcher.url}/metrics`)).text()))
    // More than a claim may wait for others, and less than the statement of the others may take.
    const queuedMs = performance.now()
    await waitUntil(() => performance.now() - queuedMs > 2_600)
    await blocker.query('ROLLBACK')
    blocker.release()

    expect((await sendingAhead).body.outcome).toBe('accepted')
    const late = await sendingBehind
    expect(late).toMatchObject(refusal(503, 'service_unavailable'))
    expect(await db.prisma.delivery.findUnique({ where: { id: behind } })).toBeNull()
    expect((await send(behind)).body.outcome).toBe('accepted')
    expect(endpoint.requests).toHaveLength(2)
  })
})
