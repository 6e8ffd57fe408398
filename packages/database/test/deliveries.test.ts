import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from '@jest/globals'
import {
  claimDeliveries,
  deleteOldDeliveries,
  type DeliveryClaimRequest,
  type DeliveryResult,
  findDeliveryState,
  newId,
  recordOutcomes,
  removeUnsentDelivery,
} from '../src/index.ts'
import { ACCEPTED, newClaim, start, useStartable } from './support/start-fixtures.ts'

const acme = useStartable()

const request = (changes: Partial<DeliveryClaimRequest> = {}): DeliveryClaimRequest =>
  newClaim(acme.organizationId, acme.sourceId, { requestBody: '{"order_id":"A-2"}', ...changes })
const accepted: DeliveryResult = { ...ACCEPTED, answer: 'thanks' }
const kindsOf = async (requests: DeliveryClaimRequest[]) =>
  (await claimDeliveries(acme.db, requests)).map(({ kind }) => kind)
const outcomeOf = async (id: string) => (await findDeliveryState(acme.db, id))?.delivery.outcome

describe('removeUnsentDelivery', () => {
  test('removes the claim that it names, and no later claim of the same id', async () => {
    const claim = request()
    await claimDeliveries(acme.db, [claim])
    const first = (await findDeliveryState(acme.db, claim.id))!.delivery
    expect(await removeUnsentDelivery(acme.db, { ...first, organizationId: newId() })).toBe(false)
    expect(await removeUnsentDelivery(acme.db, first)).toBe(true)
    // The time of the record is in milliseconds.
    await sleep(5)
    expect(await kindsOf([claim])).toEqual(['claimed'])
    expect(await removeUnsentDelivery(acme.db, first)).toBe(false)
    expect(await outcomeOf(claim.id)).toBe('in_flight')
  })
})

describe('deleteOldDeliveries', () => {
  test('keeps the deliveries of a run until it has ended, because it may be resumed', async () => {
    const { startId: runId } = await start(acme.db, acme)
    const claim = request({ runId })
    await claimDeliveries(acme.db, [claim])
    await recordOutcomes(acme.db, [{ organizationId: acme.organizationId, id: claim.id, result: accepted }])
    const createdAt = new Date(Date.now() - 3 * 86_400_000)
    await acme.db.prisma.delivery.update({ where: { id: claim.id }, data: { createdAt } })
    const deleteOld = (): Promise<number> => deleteOldDeliveries(acme.db, { olderThanDays: 1, batchSize: 100 })
    const endAs = (status: string, finishedAt: Date | null): Promise<unknown> =>
      acme.db.prisma.start.update({ where: { id: runId }, data: { status, finishedAt } })
    expect(await deleteOld()).toBe(0)
    await endAs('running', null)
    expect(await deleteOld()).toBe(0)
    await endAs('succeeded', new Date())
    expect(await deleteOld()).toBe(1)
    expect(await outcomeOf(claim.id)).toBeUndefined()
  })
})

describe('claimDeliveries', () => {
  test('claims each id once when concurrent batches contain the same ids in different orders', async () => {
    const requests = Array.from({ length: 20 }, () => request())
    const batches = await Promise.all([requests, requests.toReversed(), requests].map(kindsOf))
    expect(batches.flat().filter((kind) => kind === 'claimed')).toHaveLength(20)
    expect(batches.flat().filter((kind) => kind === 'known')).toHaveLength(40)
  })
})

describe('recordOutcomes', () => {
  test('records each outcome with its delivery, and resolves to the times', async () => {
    const requests = [request(), request()]
    await claimDeliveries(acme.db, requests)
    const [first, second] = requests.map(({ id }) => id)
    const rejected = { ...accepted, outcome: 'rejected', status: 400 } as const
    const recorded = await recordOutcomes(acme.db, [
      { organizationId: acme.organizationId, id: second!, result: rejected },
      { organizationId: acme.organizationId, id: first!, result: accepted },
      { organizationId: acme.organizationId, id: newId(), result: accepted },
    ])
    expect(recorded).toEqual([expect.any(Date), expect.any(Date), undefined])
    expect([await outcomeOf(first!), await outcomeOf(second!)]).toEqual(['accepted', 'rejected'])
  })

  test('replaces neither a final outcome nor one of another organization', async () => {
    const mine = request()
    await claimDeliveries(acme.db, [mine])
    const record = (result: DeliveryResult, organizationId = acme.organizationId) =>
      recordOutcomes(acme.db, [{ organizationId, id: mine.id, result }])
    expect(await record(accepted, newId())).toEqual([undefined])
    expect(await record({ ...accepted, outcome: 'unknown' })).toEqual([expect.any(Date)])
    expect(await record({ ...accepted, outcome: 'unknown' })).toEqual([undefined])
    expect(await record(accepted)).toEqual([expect.any(Date)])
    expect(await record({ ...accepted, outcome: 'timed_out' })).toEqual([undefined])
    expect(await outcomeOf(mine.id)).toBe('accepted')
  })
})
