import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { createTestDatabase } from '@workflow-service/testkit'
import {
  appendSteps,
  claimDeliveries,
  createDatabase,
  type Database,
  type DeliveryClaimRequest,
  type DeliveryResult,
  findDeliveryState,
  finishRuns,
  type Lease,
  newId,
  recordOutcomes,
  recordStarts,
  releaseSessions,
  renewLeases,
  type AcquiredSessions,
  acquireSessions,
  acquireWaitingSessions,
} from '../src/index.ts'
import { createStartable, newStart, start, type Startable } from './support/start-fixtures.ts'
import { onConnection, type OpenDatabase, openDatabase } from './support/open-database.ts'

let db: Database
let opened: OpenDatabase
let acme: Startable
const sourceId = newId()
beforeAll(async () => {
  opened = await openDatabase()
  db = opened.db
  acme = await createStartable(db)
  await db.prisma.webhookSource.create({
    data: {
      id: sourceId,
      organizationId: acme.organizationId,
      name: 'Order intake',
      nameKey: 'order intake',
      description: '',
      endpointUrl: 'https://acme.example/orders',
      exampleRequestBody: { order_id: 'A-1' },
    },
  })
})
afterAll(() => opened.close())

function request(changes: Partial<DeliveryClaimRequest> = {}): DeliveryClaimRequest {
  const { organizationId } = acme
  const requestBody = '{"order_id":"A-2"}'
  return {
    id: newId(),
    organizationId,
    sourceId,
    requestBody,
    runId: null,
    requestId: 'r',
    lease: null,
    ...changes,
  }
}
const accepted: DeliveryResult = {
  outcome: 'accepted',
  status: 200,
  reason: null,
  mismatches: null,
  durationMs: 12,
  answer: 'thanks',
}
const kindsOf = async (requests: DeliveryClaimRequest[]) =>
  (await claimDeliveries(db, requests)).map(({ kind }) => kind)
const outcomeOf = async (id: string) => (await findDeliveryState(db, acme.organizationId, id))?.delivery.outcome

describe('deliveries that are claimed together', () => {
  test('are judged each for itself, and answered in the order asked', async () => {
    const { sessionId } = await start(db, acme)
    const known = request()
    await claimDeliveries(db, [known])
    const requests = [
      request(),
      request({ sourceId: newId() }),
      known,
      request({ lease: { sessionId, epoch: 0 } }),
      request({ lease: { sessionId, epoch: 1 } }),
      request({ organizationId: newId() }),
      request({ lease: { sessionId: newId(), epoch: 0 } }),
    ]
    expect(await kindsOf(requests)).toEqual([
      'claimed',
      'no_source',
      'known',
      'claimed',
      'lease_lost',
      'no_source',
      'lease_lost',
    ])
    expect(await Promise.all(requests.map(({ id }) => outcomeOf(id)))).toEqual([
      'in_flight',
      undefined,
      'in_flight',
      'in_flight',
      undefined,
      undefined,
      undefined,
    ])
  })

  test('get one claim for an id that is named twice', async () => {
    const twice = request()
    expect(await kindsOf([twice, request(), { ...twice }])).toEqual(['claimed', 'claimed', 'known'])
  })

  test('get one claim for each id, however many batches ask at once and in whatever order', async () => {
    const requests = Array.from({ length: 20 }, () => request())
    const batches = await Promise.all([requests, requests.toReversed(), requests].map(kindsOf))
    expect(batches.flat().filter((kind) => kind === 'claimed')).toHaveLength(20)
    expect(batches.flat().filter((kind) => kind === 'known')).toHaveLength(40)
  })
})

describe('outcomes that are recorded together', () => {
  test('each go to their own delivery, and tell when', async () => {
    const requests = [request(), request()]
    await claimDeliveries(db, requests)
    const [first, second] = requests.map(({ id }) => id)
    const rejected = { ...accepted, outcome: 'rejected', status: 400 } as const
    const recorded = await recordOutcomes(db, [
      { organizationId: acme.organizationId, id: second!, result: rejected },
      { organizationId: acme.organizationId, id: first!, result: accepted },
      { organizationId: acme.organizationId, id: newId(), result: accepted },
    ])
    expect(recorded).toEqual([expect.any(Date), expect.any(Date), undefined])
    expect([await outcomeOf(first!), await outcomeOf(second!)]).toEqual(['accepted', 'rejected'])
  })

  test('never write over what is known for certain, nor over another organization', async () => {
    const mine = request()
    await claimDeliveries(db, [mine])
    const record = (result: DeliveryResult, organizationId = acme.organizationId) =>
      recordOutcomes(db, [{ organizationId, id: mine.id, result }])
    expect(await record(accepted, newId())).toEqual([undefined])
    expect(await record({ ...accepted, outcome: 'unknown' })).toEqual([expect.any(Date)])
    expect(await record({ ...accepted, outcome: 'unknown' })).toEqual([undefined])
    expect(await record(accepted)).toEqual([expect.any(Date)])
    expect(await record({ ...accepted, outcome: 'timed_out' })).toEqual([undefined])
    expect(await outcomeOf(mine.id)).toBe('accepted')
  })

  test('of one delivery that is named twice, the first counts', async () => {
    const twice = request()
    await claimDeliveries(db, [twice])
    const { organizationId } = acme
    const recorded = await recordOutcomes(db, [
      { organizationId, id: twice.id, result: accepted },
      { organizationId, id: twice.id, result: { ...accepted, outcome: 'unknown' } },
    ])
    expect(recorded).toEqual([expect.any(Date), undefined])
    expect(await outcomeOf(twice.id)).toBe('accepted')
  })
})

// Planning one of these takes longer than carrying it out.
test.each([1, 12])('Postgres plans the statements of a run once, at %i to a batch', async (size) => {
  const client = await db.pool.connect()
  try {
    const on = onConnection(client)
    const owner = `owner of ${size}`
    const taking = { owner, leaseMs: 60_000, places: size, perOrganization: size, held: new Map<string, number>() }
    const choosing = { ...taking, held: new Map([[newId(), size]]) }
    const { organizationId } = acme
    const begin = async (isKeyed: boolean) => {
      const idempotency = () => (isKeyed ? { key: newId(), requestSha256: Buffer.alloc(32) } : null)
      const starts = Array.from({ length: size }, () => newStart(acme, { idempotency: idempotency() }))
      const outcomes = await recordStarts(
        on,
        starts.map((each) => ({ organizationId, start: each })),
      )
      return outcomes.flatMap((outcome) => (outcome.kind === 'accepted' ? [outcome.sessionId] : []))
    }
    const goOn = async ({ sessions }: AcquiredSessions) => {
      expect(sessions).toHaveLength(size)
      const leases: Lease[] = sessions.map(({ lease }) => lease)
      const claims = sessions.map(({ lease }) => request({ lease }))
      await renewLeases(on, owner, 60_000, leases)
      await appendSteps(
        on,
        owner,
        sessions.map(({ lease, run }) => ({
          lease,
          runId: run!.id,
          position: 0,
          steps: [{ kind: 'note', data: { code: 'test', text: 'a step' } }],
        })),
      )
      expect((await claimDeliveries(on, claims)).every(({ kind }) => kind === 'claimed')).toBe(true)
      await recordOutcomes(
        on,
        claims.map(({ id }) => ({ organizationId, id, result: accepted })),
      )
      await finishRuns(
        on,
        owner,
        sessions.map(({ lease, run }) => ({
          lease,
          number: run!.number,
          status: 'succeeded',
          error: null,
          goesOn: true,
        })),
      )
      await releaseSessions(on, owner, leases)
    }
    for (let round = 0; round < 12; round += 1) {
      await goOn(await acquireSessions(on, taking, await begin(false)))
      await goOn(await acquireSessions(on, choosing, await begin(true)))
      await begin(false)
      await goOn(await acquireWaitingSessions(on, taking))
    }
    const { rows } = await client.query<{ name: string; custom: number }>(
      `SELECT name, custom_plans::integer AS custom FROM pg_prepared_statements WHERE generic_plans + custom_plans >= 12`,
    )
    expect(rows.map(({ name }) => name).toSorted()).toEqual([
      'append-steps',
      'claim-deliveries',
      'finish-runs',
      'record-delivery-outcomes',
      'record-starts-in-new-sessions',
      'record-starts-without-waiting',
      'release-sessions',
      'renew-leases',
      'take-all-sessions',
      'take-sessions',
      'take-waiting-sessions',
    ])
    expect(rows.filter(({ custom }) => custom > 5)).toEqual([])
  } finally {
    client.release(true)
  }
})

test('what a connection planned while the tables were empty scans none of them when they have grown', async () => {
  const { url, drop: dropEmpty } = await createTestDatabase()
  const empty = createDatabase({ url, applicationName: 'test' })
  const client = await empty.pool.connect()
  try {
    await client.query('ALTER TABLE deliveries SET (autovacuum_enabled = false)')
    await client.query('ANALYZE')
    await client.query('SET plan_cache_mode = force_generic_plan')
    const on = onConnection(client)
    const { organizationId } = await createStartable(empty)
    const result = {
      outcome: 'accepted',
      status: 200,
      reason: null,
      mismatches: null,
      durationMs: 1,
      answer: null,
    } as const
    const ids = Array.from({ length: 3 }, () => newId())
    const record = () =>
      recordOutcomes(
        on,
        ids.map((id) => ({ id, organizationId, result })),
      )
    expect(await record()).toEqual([undefined, undefined, undefined])
    await client.query(
      `INSERT INTO deliveries (id, organization_id, source_id, kind, outcome, request_body)
       SELECT coalesce(($2::uuid[])[n], gen_random_uuid()), $1, gen_random_uuid(), 'verification', 'in_flight', '{}'
       FROM generate_series(1, 2000) n`,
      [organizationId, ids],
    )
    await client.query('BEGIN')
    expect(await record()).toEqual([expect.any(Date), expect.any(Date), expect.any(Date)])
    const { rows } = await client.query(
      `SELECT seq_scan::integer AS scans FROM pg_stat_xact_user_tables WHERE relname = 'deliveries'`,
    )
    expect(rows).toEqual([{ scans: 0 }])
    await client.query('ROLLBACK')
  } finally {
    client.release(true)
    await empty.close()
    await dropEmpty()
  }
})
