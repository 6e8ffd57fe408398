import { afterEach, expect, jest, test } from '@jest/globals'
import type { Db } from '@workflow-service/database'
import { createApiKeyUsage } from './api-key-usage.ts'

afterEach(() => {
  jest.restoreAllMocks()
})

test('uses that could not be written are written the next time, the latest of each key', async () => {
  let nowMs = 0
  jest.spyOn(performance, 'now').mockImplementation(() => nowMs)
  const written: unknown[] = []
  let isAvailable = false
  const query = ({ values: [ids, agesMs] }: { values: unknown[] }) => {
    nowMs += 1_000
    usage.record('used again')
    if (!isAvailable) return Promise.reject(new Error('No connection'))
    written.push([ids, agesMs])
    return Promise.resolve({ rows: [] })
  }
  const usage = createApiKeyUsage({ pool: { query } } as unknown as Db)
  usage.record('used once')
  usage.record('used again')
  await expect(usage.write()).rejects.toThrow('No connection')
  isAvailable = true
  nowMs += 30_000
  await usage.write()
  await usage.write()
  expect(written).toEqual([
    [
      ['used again', 'used once'],
      [30_000, 31_000],
    ],
    [['used again'], [0]],
  ])
})
