import { beforeAll, expect, test } from '@jest/globals'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { checkRecord, FIELD, type RecordToCheck } from './check-record.ts'
import { createOrganization, createWorkflow } from './customers.ts'
import { seedRuns } from './seed.ts'

const database = useTestDatabase()
let record: RecordToCheck

// Ten runs of one session, of which the last has failed.
beforeAll(async () => {
  const { pool } = database.db
  const organization = await createOrganization({ pool })
  const workflowId = await createWorkflow({ pool }, organization, 'Does nothing.')
  await seedRuns({ pool }, { ...organization, workflowId }, 10, { days: 1, spacingMs: 100 })
  const { rows } = await pool.query<{ startId: string; sessionId: string; text: string }>(
    `SELECT id AS "startId", session_id AS "sessionId", substr(context, ${FIELD.length + 1}) AS text
     FROM starts ORDER BY number`,
  )
  record = {
    organizationId: organization.organizationId,
    requested: rows.map(({ text, ...ids }) => ({ text, accepted: { ...ids, requestedAt: 1, answeredAt: 2 } })),
    arrivals: rows.slice(0, 9).map(({ text }) => ({ path: '/orders', text })),
    paths: ['/orders'],
    mayFailWith: (error) => error.startsWith('seeded'),
  }
})

test.each<[what: string, change: () => Partial<RecordToCheck>, violations: RegExp[]]>([
  ['what is right', () => ({}), []],
  ['a lost payload', () => ({ arrivals: record.arrivals.slice(1) }), [/only nothing arrived$/]],
  ['a payload that was sent twice', () => ({ arrivals: [...record.arrivals, record.arrivals[8]!] }), [/sent 2 times$/]],
  ['payloads in another order', () => ({ arrivals: record.arrivals.toReversed() }), Array(8).fill(/out of order$/)],
  ['starts in another order', () => ({ requested: record.requested.toReversed() }), Array(9).fill(/lower number$/)],
  ['a run of no start', () => ({ requested: record.requested.slice(1) }), [/was not requested$/]],
  ['a failure that nothing explains', () => ({ mayFailWith: () => false }), [/no outage explains: seeded/]],
])('the comparison of records finds %s', async (_what, change, violations) => {
  const findings = await checkRecord(database.db.pool, { ...record, ...change() })
  expect(findings.violations).toEqual(violations.map((violation) => expect.stringMatching(violation)))
})
