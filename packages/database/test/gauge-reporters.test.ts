import { expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { isGaugeReporter, REPORTER_LEASE_MS, stopReportingGauges } from '../src/index.ts'

const database = useTestDatabase()

const reportersAmong = async (owners: readonly string[]): Promise<string[]> => {
  const answers = await Promise.all(owners.map((owner) => isGaugeReporter(database.db, owner)))
  return owners.filter((_owner, index) => answers[index])
}

test('one process at a time reports the gauges of the whole system, also while another one takes over', async () => {
  const owners = ['a', 'b', 'c']
  const first = await reportersAmong(owners)
  expect(first).toHaveLength(1)
  for (let scrape = 0; scrape < 3; scrape += 1) expect(await reportersAmong(owners)).toEqual(first)

  // The reporter is no longer scraped.
  const others = owners.filter((owner) => owner !== first[0])
  expect(await reportersAmong(others)).toEqual([])
  await database.db.pool.query(`UPDATE gauge_reporters SET until = until - $1 * interval '1 millisecond'`, [
    REPORTER_LEASE_MS,
  ])
  const second = await reportersAmong(others)
  expect(second).toHaveLength(1)
  expect(await reportersAmong(owners)).toEqual(second)

  await stopReportingGauges(database.db, String(first[0]))
  expect(await reportersAmong(owners)).toEqual(second)
  await stopReportingGauges(database.db, String(second[0]))
  expect(await reportersAmong(first)).toEqual(first)
})
