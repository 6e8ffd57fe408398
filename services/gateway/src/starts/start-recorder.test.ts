import { randomUUID } from 'node:crypto'
import { afterEach, expect, jest, test } from '@jest/globals'
import type { Db, NewStart } from '@workflow-service/database'
import { createStartRecorder } from './start-recorder.ts'

afterEach(() => {
  jest.restoreAllMocks()
})

const nextTurn = () => new Promise((resolve) => setImmediate(resolve))
const newStart = (others: Partial<NewStart> = {}): NewStart => ({
  startId: randomUUID(),
  workflowId: randomUUID(),
  sessionId: null,
  newSessionId: randomUUID(),
  context: 'go',
  apiKeyId: randomUUID(),
  requestId: 'r',
  idempotency: null,
  ...others,
})

/** Records in a database that gives each start of a statement the outcome. */
function recordIn(kind: string, connect: () => Promise<unknown> = () => Promise.reject(new Error('No connection'))) {
  const query = ({ values: [starts] }: { values: string[] }) =>
    Promise.resolve({ rows: (JSON.parse(starts!) as unknown[]).map(() => ({ kind })) })
  const metrics = { starts: { inc: () => {} }, startBatches: { observe: () => {} } } as never
  const { record } = createStartRecorder({ pool: { query, connect } } as unknown as Db, metrics)
  return (start: NewStart) => record('o', start).catch((error: Error) => error.message)
}

test('repeated starts of a batch whose first one is refused are refused without a connection each', async () => {
  const record = recordIn('workflow_inactive')
  const keyed = newStart({ idempotency: { key: 'k', requestSha256: Buffer.from('1') } })
  const other = { ...keyed, idempotency: { key: 'k', requestSha256: Buffer.from('2') } }
  const refused = { kind: 'workflow_inactive' }
  expect(await Promise.all([keyed, keyed, keyed, other].map(record))).toEqual([
    refused,
    refused,
    refused,
    'No connection',
  ])
})

test('a start of a locked session has waited since it was asked for, in both queues', async () => {
  let nowMs = 0
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs)
  const connection = Promise.withResolvers<never>()
  const connect = jest.fn(() => connection.promise)
  const record = recordIn('session_locked', connect)
  const start = newStart({ sessionId: randomUUID() })
  const first = record(start)
  while (connect.mock.calls.length === 0) await nextTurn()
  const second = record(start)
  nowMs = 2_000
  for (let turn = 0; turn < 5; turn++) await nextTurn()
  nowMs = 2_600
  connection.reject(new Error('Connection terminated'))
  expect([await first, await second]).toEqual(['Connection terminated', expect.stringContaining('nothing was started')])
  expect(connect).toHaveBeenCalledTimes(1)
})
