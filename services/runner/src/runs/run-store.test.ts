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
