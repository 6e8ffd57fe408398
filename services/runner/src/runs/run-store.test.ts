import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { type Database, newId } from '@workflow-service/database'
import { createLeasedSession } from '../../test/support/leased-session.ts'
import { createRunStore } from './run-store.ts'

const workflow = { id: newId(), name: 'Orders', description: '', rulesFileId: null }
const run = { id: newId(), organizationId: newId(), number: 1, workflow }

test('reads of the same sources in one turn of the event loop share a statement', async () => {
  const read: string[][] = []
  const query = async ({ values: [, ids] }: { values: [organizationId: string, ids: string[]] }) => {
    read.push(ids)
    return { rows: ids.map((id) => ({ id })) }
  }
  const store = createRunStore({ pool: { query } } as unknown as Database, 'runner')
  const readSources = (...ids: string[]) => store.open(createLeasedSession().session, run).readSources(ids)
  const [first, second] = await Promise.all([readSources('a', 'b'), readSources('a', 'b'), readSources('b')])
  await readSources('b')
  expect(read).toEqual([['a', 'b'], ['b'], ['b']])
  expect(second).toBe(first)
})

test('a statement writes at most 1 MiB of steps, of as many runs as that holds', async () => {
  const runsPerStatement: number[] = []
  const query = async ({ values }: { values: [owner: string, sessionIds: string[], epochs: number[]] }) => {
    const [, sessionIds, epochs] = values
    runsPerStatement.push(sessionIds.length)
    return { rows: sessionIds.map((sessionId, index) => ({ sessionId, epoch: epochs[index] })) }
  }
  const store = createRunStore({ pool: { query } } as unknown as Database, 'runner')
  const append = (text: string) =>
    store.open(createLeasedSession().session, run).appendSteps(0, [{ kind: 'note', data: { code: 'test', text } }])
  await Promise.all(['x', 'y', 'x'.repeat(600_000), 'y'.repeat(600_000), 'x'.repeat(2_000_000), 'z'].map(append))
  expect(runsPerStatement).toEqual([3, 1, 1, 1])
})

test('a session that could not be parked is not ending: the loss of its lease stops the next attempt', async () => {
  const error = new Error('A defect')
  const connect = () => Promise.reject(error)
  const store = createRunStore({ pool: { connect } } as unknown as Database, 'runner')
  const { session } = createLeasedSession()
  const parking = store.open(session, run).parkForSource({ sourceId: newId(), position: 0 })
  expect(session.isEnding).toBe(true)
  await expect(parking).rejects.toBe(error)
  expect(session.isEnding).toBe(false)
})

/** A store whose connections are made one by one. */
function createConnecting() {
  const connected: (() => void)[] = []
  const connect = async () => {
    await new Promise<void>((resolve) => connected.push(resolve))
    return { query: async () => ({ rows: [] }), release: () => {} }
  }
  return { connected, store: createRunStore({ pool: { connect } } as unknown as Database, 'runner') }
}

const money = { turn: 1, amount: 1, runSpent: 0, expiresInMs: 1_000 }

test('runs that reserve money take one connection of an organization, and leave the others', async () => {
  const { connected, store } = createConnecting()
  const open = (organizationId: string) => store.open(createLeasedSession().session, { ...run, organizationId })
  const [one, other] = [newId(), newId()]
  const ofOne = [1, 2, 3].map((turn) => open(one).reserveCost({ ...money, turn }))
  const settled = open(one).settleCost(1, 0)
  const ofOther = open(other).reserveCost(money)
  await nextTurn()
  expect(connected).toHaveLength(2)
  connected[1]!()
  expect(await ofOther).toEqual({ kind: 'reserved' })
  for (const at of [0, 2, 3, 4]) {
    connected[at]!()
    await nextTurn()
  }
  expect(await Promise.all(ofOne)).toEqual(ofOne.map(() => ({ kind: 'reserved' })))
  await settled
})

test('a run whose lease is lost while it waits to reserve money reserves none', async () => {
  const { connected, store } = createConnecting()
  const { activeSessions, session } = createLeasedSession()
  const first = store.open(createLeasedSession().session, run).reserveCost(money)
  const waiting = Promise.allSettled([store.open(session, run).reserveCost(money)])
  await nextTurn()
  activeSessions.markLost(session)
  connected[0]!()
  await first
  await nextTurn()
  expect(connected).toHaveLength(1)
  expect(await waiting).toEqual([{ status: 'rejected', reason: session.abandoned.reason }])
})
