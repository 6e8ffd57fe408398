import type { Db } from '@workflow-service/database'
import { waitUntil } from '@workflow-service/dev-servers'

/** Does the work and resolves when notices of all these topics of the organization were sent meanwhile. */
export async function hearNotices(
  db: Db,
  organizationId: string,
  topics: readonly string[],
  work: () => Promise<unknown>,
): Promise<void> {
  const heard = new Set<string>()
  const client = await db.pool.connect()
  try {
    client.on('notification', ({ payload = '{}' }) => {
      const notices = JSON.parse(payload) as Record<string, readonly string[]>
      for (const topic of notices[organizationId] ?? []) heard.add(topic)
    })
    await client.query('LISTEN app_events')
    // As the application does for an open page: without one, no notice is sent.
    await client.query(`SELECT pg_advisory_lock_shared(hashtextextended('open pages', 0))`)
    await work()
    await waitUntil(() => topics.every((topic) => heard.has(topic)))
  } finally {
    client.release(true)
  }
}
