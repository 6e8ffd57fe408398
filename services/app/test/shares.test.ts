import { expect, test } from '@jest/globals'
import { waitUntil } from '@workflow-service/testkit'
import { useTestApp } from './support/test-app.ts'

const app = useTestApp()

test('many exports of one organization take no connection from the requests of another one, nor all from its own', async () => {
  const other = await app.createOrganization()
  const blocker = await app.db.pool.connect()
  try {
    // An export waits for the lock, and keeps its connection.
    await blocker.query('BEGIN; LOCK TABLE webhook_sources IN ACCESS EXCLUSIVE MODE')
    const exports = Array.from({ length: 30 }, () => app.call(app.organization.admin, 'exportManifest'))
    await waitUntil(async () => {
      const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
      return (await app.db.pool.query(waiting)).rows.length > 0
    })
    for (const person of [other.member, app.organization.admin, other.owner]) {
      expect((await app.call(person, 'listSignIns')).status).toBe(200)
    }
    await blocker.query('COMMIT')
    const statuses = (await Promise.all(exports)).map(({ status }) => status)
    expect(statuses).toEqual(exports.map(() => 200))
  } finally {
    blocker.release(true)
  }
})
