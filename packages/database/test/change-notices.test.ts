import { afterEach, describe, expect, test } from '@jest/globals'
import { waitUntil } from '@workflow-service/testkit'
import { EVENT_TOPICS } from '@workflow-service/contract/app'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import {
  createChangeNotifier,
  type Database,
  type ChangeNotice,
  type ChangeListener,
  listenToChanges,
  newId,
} from '../src/index.ts'

const database = useTestDatabase({ maxConnections: 5 })
const listeners: ChangeListener[] = []
afterEach(async () => {
  await Promise.all(listeners.splice(0).map((listener) => listener.close()))
})

async function listen(applicationName = 'notices-test') {
  const heard = { notices: [] as ChangeNotice[], states: [] as string[], gaps: 0 }
  const listener = listenToChanges({
    url: database.url,
    applicationName,
    onNotice: (notice) => heard.notices.push(notice),
    onGap: () => (heard.gaps += 1),
    onState: (state) => heard.states.push(state),
  })
  listeners.push(listener)
  await waitUntil(() => heard.states.includes('up'))
  await listener.addPage()
  return { ...listener, heard }
}

/** A sender that counts its statements. */
function createSender(query?: () => Promise<never>) {
  const sent = { statements: 0, errors: 0 }
  const pool = {
    query: (...args: Parameters<Database['pool']['query']>) => {
      sent.statements += 1
      return query ? query() : database.db.pool.query(...args)
    },
  } as unknown as Database['pool']
  return { sent, sender: createChangeNotifier({ db: { pool }, onError: () => (sent.errors += 1) }) }
}

describe('notices', () => {
  test('of 250 ms are merged by organization and sent with one statement, and nothing is sent when idle', async () => {
    const { heard } = await listen()
    const { sent, sender } = createSender()
    const [acme, other] = [newId(), newId()]
    for (let count = 0; count < 1_000; count += 1) sender.add(acme, 'runs')
    sender.add(acme, 'runs', 'sessions')
    sender.add(other, 'deliveries')
    expect(sent.statements).toBe(0)
    await waitUntil(() => heard.notices.length === 2)
    expect(heard.notices).toEqual([
      { organizationId: acme, topics: ['runs', 'sessions'] },
      { organizationId: other, topics: ['deliveries'] },
    ])
    await sender.close()
    expect(sent.statements).toBe(1)
  })

  test('of any number of organizations fit into notifications', async () => {
    const { heard } = await listen()
    const { sender } = createSender()
    const ids = Array.from({ length: 1_000 }, newId)
    for (const id of ids) sender.add(id, ...EVENT_TOPICS)
    await sender.close()
    await waitUntil(() => heard.notices.length === ids.length)
    expect(heard.notices.map(({ organizationId }) => organizationId)).toEqual(ids)
    expect(heard.notices.at(-1)?.topics).toEqual([...EVENT_TOPICS])
  })

  test('are sent while a page of any application is open, and nothing is written without one', async () => {
    const [{ heard, ...one }, other] = [await listen(), await listen()]
    const { sender } = createSender()
    const send = async (): Promise<string> => {
      const id = newId()
      sender.add(id, 'runs')
      await sender.close()
      return id
    }
    await one.addPage()
    one.removePage()
    one.removePage()
    const first = await send()
    other.removePage()
    // The lock is freed beside the statements of this test.
    await waitUntil(async () => {
      const query = `SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = database
        WHERE datname = current_database() AND locktype = 'advisory'`
      return (await database.db.pool.query(query)).rowCount === 0
    })
    await send()
    await one.addPage()
    const third = await send()
    await waitUntil(() => heard.notices.length === 2)
    expect(heard.notices.map(({ organizationId }) => organizationId)).toEqual([first, third])
  })

  test('that cannot be sent are reported once, until one is sent again', async () => {
    const { sent, sender } = createSender(() => Promise.reject(new Error('no database')))
    for (let count = 0; count < 3; count += 1) {
      sender.add(newId(), 'runs')
      await sender.close()
    }
    expect(sent).toEqual({ statements: 3, errors: 1 })
  })
})

describe('a listener', () => {
  test('reconnects by itself after its connection broke, says that notices may be lost, and hears the next ones', async () => {
    const { heard } = await listen('notices-broken')
    await database.db.pool.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'notices-broken'`,
    )
    await waitUntil(() => heard.gaps === 1)
    expect(heard.states).toEqual(['up', 'down', 'up'])
    const { sender } = createSender()
    const id = newId()
    sender.add(id, 'users')
    await waitUntil(() => heard.notices.length === 1)
    expect(heard.notices).toEqual([{ organizationId: id, topics: ['users'] }])
  })
})
