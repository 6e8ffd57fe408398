import { createServer, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { EVENT_TOPICS } from '@workflow-service/contract/app'
import { createCertificate, freePort, listen as listenOn, waitUntil } from '@workflow-service/testkit'
import { useTestDatabase } from '@workflow-service/testkit/use-test-database'
import { afterEach, describe, expect, test } from '@jest/globals'
import {
  type ChangeListener,
  type ChangeNotice,
  createChangeNotifier,
  createDatabase,
  type Database,
  forgetRunners,
  holdRunnerLock,
  inTransaction,
  isDatabaseUnavailable,
  isGaugeReporter,
  listenToChanges,
  listUnlockedRunners,
  migrate,
  newId,
  REPORTER_LEASE_MS,
  stopReportingGauges,
} from '../src/index.ts'
import { inPrismaTransaction } from '../src/connection/prisma-transaction.ts'

const database = useTestDatabase({ maxConnections: 5 })

/** The URL of the test's database with a host before it that does not answer. */
async function withClosedHost(): Promise<string> {
  const { host } = new URL(database.url)
  return database.url.replace(host, `127.0.0.1:${await freePort()},${host}`)
}

test('of several hosts, pool, migration and listener connect to the one that answers', async () => {
  const url = await withClosedHost()
  expect(await migrate({ databaseUrl: url })).toEqual({ applied: [] })
  const db = createDatabase({ url, applicationName: 'test', maxConnections: 4 })
  await Promise.all([db.ping(), db.ping(), db.prisma.organization.count()])
  const up = Promise.withResolvers<string>()
  const hooks = { onNotice: () => {}, onGap: () => {}, onState: up.resolve }
  const listener = listenToChanges({ url, applicationName: 'test', ...hooks })
  expect(await up.promise).toBe('up')
  await listener.close()
  await db.close()
})

/** A message of PostgreSQL's protocol. */
function message(type: string, body: string): Buffer {
  const head = Buffer.from(`${type}0000`)
  head.writeInt32BE(4 + body.length, 1)
  return Buffer.concat([head, Buffer.from(body)])
}

const READY = [message('R', '\0\0\0\0'), message('Z', 'I')]
const BEGUN = [message('C', 'BEGIN\0'), message('Z', 'T')]

/** A database whose server gives each connection these answers in turn, and then does this at each further message. */
async function answeringDatabase(
  answers: Buffer[][],
  andThen: (socket: Socket, data: Buffer) => void,
  { statementTimeoutMs, hosts = 1 }: { statementTimeoutMs?: number; hosts?: number } = {},
) {
  const server = createServer((socket) => {
    const left = answers.map((answer) => Buffer.concat(answer))
    socket.on('error', () => {})
    socket.on('data', (data) => (left.length > 0 ? socket.write(left.shift()!) : andThen(socket, data)))
  })
  const host = `127.0.0.1:${await listenOn(server)}`
  const url = `postgres://ada@${Array.from({ length: hosts }, () => host).join()}/name`
  const db = createDatabase({ url, applicationName: 'test', statementTimeoutMs })
  const close = async () => {
    await db.close()
    server.close()
  }
  return { db, [Symbol.asyncDispose]: close }
}

const isUnavailable = async (work: Promise<unknown>) =>
  isDatabaseUnavailable(await work.catch((error: unknown) => error))

/** The answer to the question whether a host accepts writes. */
const ACCEPTS_WRITES = [
  message('T', `\0\x01isReadOnly${'\0'.repeat(10)}\x19${'\0'.repeat(8)}`),
  message('D', '\0\x01\0\0\0\x03off'),
  message('C', 'SELECT 1\0'),
  message('Z', 'I'),
]

test.each([1, 2])(
  'a connection that PostgreSQL ends as it begins fails only the transaction, of %i hosts',
  async (hosts) => {
    const ended = message('E', 'SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0')
    const answer = (socket: Socket, data: Buffer) => {
      if (data.includes('find-primary')) socket.write(Buffer.concat(READY))
      else if (data.includes('transaction_read_only')) socket.write(Buffer.concat(ACCEPTS_WRITES))
      else socket.end(Buffer.concat([...READY, ended]))
    }
    await using answering = await answeringDatabase([], answer, { hosts })
    expect(await isUnavailable(inTransaction(answering.db, async () => {}))).toBe(true)
  },
)

test('a connection that breaks at the COMMIT leaves the database unavailable, to Prisma too', async () => {
  await using answering = await answeringDatabase([READY, BEGUN], (socket) => socket.resetAndDestroy())
  expect(await isUnavailable(inTransaction(answering.db, async () => {}))).toBe(true)
  expect(await isUnavailable(inPrismaTransaction(answering.db, async () => {}))).toBe(true)
})

test('a transaction whose statement is not answered ends without a ROLLBACK, which would wait as long', async () => {
  await using answering = await answeringDatabase([READY, BEGUN], () => {}, { statementTimeoutMs: 1 })
  const sent: unknown[] = []
  const working = inTransaction(answering.db, async (client) => {
    const query = client.query.bind(client) as (text: string) => Promise<unknown>
    Object.assign(client, { query: async (text: string) => (sent.push(text), await query(text)) })
    await client.query('SELECT 1')
  })
  await expect(working).rejects.toThrow('Query read timeout')
  expect(sent).toEqual(['SELECT 1'])
})

test('what the server sets otherwise changes neither tables, times and numbers nor the isolation of transactions', async () => {
  const name = new URL(database.url).pathname.slice(1)
  const settings = {
    TimeZone: 'Asia/Kolkata',
    DateStyle: 'SQL, DMY',
    search_path: '',
    extra_float_digits: '-15',
    default_transaction_isolation: 'serializable',
  }
  for (const [setting, value] of Object.entries(settings)) {
    await database.db.pool.query(`ALTER DATABASE "${name}" SET ${setting} = '${value}'`)
  }
  // An option of the URL is added.
  const db = createDatabase({ url: `${database.url}?options=-c%20work_mem=5MB`, applicationName: 'test' })
  const createdAt = new Date('2026-03-04T05:06:07.089Z')
  const data = { id: newId(), name: 'Elsewhere', createdAt }
  await db.prisma.organization.create({ data })
  expect(await db.prisma.organization.findUnique({ where: { id: data.id } })).toMatchObject(data)
  const { rows } = await db.pool.query(
    `SELECT created_at, date_trunc('hour', created_at) AS hour, 1764439784123456::float8 AS epoch,
       current_setting('transaction_isolation') AS isolation, current_setting('work_mem') AS memory,
       current_setting('enable_seqscan') AS scans, current_setting('jit') AS compiles
     FROM organizations WHERE id = $1`,
    [data.id],
  )
  expect(rows).toEqual([
    {
      created_at: createdAt,
      hour: new Date('2026-03-04T05:00:00Z'),
      epoch: 1_764_439_784_123_456,
      isolation: 'read committed',
      memory: '5MB',
      scans: 'off',
      compiles: 'off',
    },
  ])
  await db.close()
  for (const setting of Object.keys(settings)) {
    await database.db.pool.query(`ALTER DATABASE "${name}" RESET ${setting}`)
  }
})

test('a host that accepts no writes is not used, as if it were down, and is used once it does', async () => {
  const name = new URL(database.url).pathname.slice(1)
  await database.db.pool.query(`ALTER DATABASE "${name}" SET default_transaction_read_only = on`)
  const db = createDatabase({ url: await withClosedHost(), applicationName: 'test', maxConnections: 2 })
  expect(await isUnavailable(db.ping())).toBe(true)
  await database.db.pool.query(`ALTER DATABASE "${name}" RESET default_transaction_read_only`)
  await db.ping()
  await db.close()
})

test.each([
  [
    'a transaction',
    (db: Database, id: string) => inTransaction(db, (tx) => tx.query('DELETE FROM organizations WHERE id = $1', [id])),
  ],
  [
    'a transaction of Prisma',
    (db: Database, id: string) => inPrismaTransaction(db, (tx) => tx.prisma.organization.deleteMany({ where: { id } })),
  ],
])('a connection that was opened while the database accepted no writes is closed by %s', async (_what, write) => {
  const name = new URL(database.url).pathname.slice(1)
  await database.db.pool.query(`ALTER DATABASE "${name}" SET default_transaction_read_only = on`)
  const db = createDatabase({ url: database.url, applicationName: 'test', maxConnections: 1 })
  const refused = await write(db, newId()).catch((error: unknown) => error)
  await database.db.pool.query(`ALTER DATABASE "${name}" RESET default_transaction_read_only`)
  expect(isDatabaseUnavailable(refused)).toBe(true)
  expect(await isUnavailable(write(db, newId()))).toBe(false)
  await db.close()
})

/** A server of PostgreSQL's protocol whose certificate has expired. */
async function startExpiredServer() {
  const certificate = await createCertificate({ isExpired: true })
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write('S')
      new TLSSocket(socket, { isServer: true, ...certificate }).on('error', () => {})
    })
  })
  return Object.assign(server, { port: await listenOn(server) })
}

test('a server that refuses to connect, offers no TLS or has an expired certificate is unavailable, to Prisma too', async () => {
  await using expired = await startExpiredServer()
  const changes: Partial<URL>[] = [
    { password: 'an earlier one' },
    { search: '?sslmode=verify-full' },
    { port: String(expired.port), search: '?sslmode=verify-full' },
  ]
  for (const change of changes) {
    const { href } = Object.assign(new URL(database.url), change)
    const db = createDatabase({ url: href, applicationName: 'test', maxConnections: 2 })
    expect([await isUnavailable(db.ping()), await isUnavailable(db.prisma.organization.count())]).toEqual([true, true])
    await db.close()
  }
})

test('a connection that the server closes between two statements fails only the transaction', async () => {
  const working = inTransaction(database.db, async (client) => {
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const ended = new Promise((resolve) => client.once('end', resolve))
    await database.db.pool.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid])
    await ended
  })
  await expect(working).rejects.toThrow('not queryable')
  const query = inTransaction(database.db, async (client) => (await client.query('SELECT 1 AS one')).rows)
  expect(await query).toEqual([{ one: 1 }])
})

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

test('a listener reconnects by itself after its connection broke, says that notices may be lost, and hears the next ones', async () => {
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

test('a page that opens before its listener hears notices learns, once it does, that some may be lost', async () => {
  const heard = { states: [] as string[], gaps: [] as number[] }
  const listener = listenToChanges({
    url: database.url,
    applicationName: 'notices-late',
    onNotice: () => {},
    onGap: () => heard.gaps.push(heard.states.length),
    onState: (state) => heard.states.push(state),
  })
  listeners.push(listener)
  await listener.addPage()
  expect(heard).toEqual({ states: [], gaps: [] })
  await waitUntil(() => heard.states.includes('up'))
  expect(heard.gaps).toEqual([1])
})

const countRunners = async () => (await database.db.pool.query('SELECT FROM runners')).rowCount

test('the lock of a runner is free as soon as its connection is gone, also for several that ask', async () => {
  const { db } = database
  const stopping = new AbortController()
  const holding = holdRunnerLock(db, "Ada's runner", stopping.signal)
  await waitUntil(async () => (await countRunners()) === 1)
  expect(await listUnlockedRunners(db)).toEqual([])
  stopping.abort()
  await holding
  await waitUntil(async () => (await listUnlockedRunners(db)).length === 1)
  const lists = await Promise.all([listUnlockedRunners(db), listUnlockedRunners(db)])
  expect(lists).toEqual([["Ada's runner"], ["Ada's runner"]])
  await forgetRunners(db, ["Ada's runner"])
  expect(await countRunners()).toBe(0)
})

test('the transaction of the lock holds back neither vacuum nor a migration', async () => {
  const { db } = database
  const stopping = new AbortController()
  const holding = holdRunnerLock(db, 'runner', stopping.signal)
  await waitUntil(async () => (await countRunners()) === 1)
  const { rows } = await db.pool.query(
    `SELECT backend_xid, backend_xmin,
       (SELECT json_agg(locktype ORDER BY locktype) FROM pg_locks WHERE pg_locks.pid = activity.pid) AS locks
     FROM pg_stat_activity AS activity WHERE datname = current_database() AND state = 'idle in transaction'`,
  )
  expect(rows).toEqual([{ backend_xid: null, backend_xmin: null, locks: ['advisory', 'virtualxid'] }])
  stopping.abort()
  await holding
})

test('the lock of a runner is ended by no time limit of the database', async () => {
  const name = new URL(database.url).pathname.slice(1)
  await database.db.pool.query(`ALTER DATABASE "${name}" SET transaction_timeout = 200`)
  const db = createDatabase({ url: database.url, applicationName: 'test', maxConnections: 2 })
  const stopping = new AbortController()
  const holding = holdRunnerLock(db, 'runner', stopping.signal)
  await waitUntil(async () => (await countRunners()) === 1)
  const later = db.createClient()
  const ended = new Promise<void>((resolve) => later.once('end', resolve))
  later.on('error', () => {})
  await later.connect()
  await later.query('BEGIN')
  await ended
  expect(await listUnlockedRunners(db)).toEqual([])
  stopping.abort()
  await holding
  await db.close()
  await database.db.pool.query(`ALTER DATABASE "${name}" RESET transaction_timeout`)
})

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
  const expire = `UPDATE gauge_reporters SET until = until - $1 * interval '1 millisecond'`
  await database.db.pool.query(expire, [REPORTER_LEASE_MS])
  const second = await reportersAmong(others)
  expect(second).toHaveLength(1)
  expect(await reportersAmong(owners)).toEqual(second)

  await stopReportingGauges(database.db, String(first[0]))
  expect(await reportersAmong(owners)).toEqual(second)
  await stopReportingGauges(database.db, String(second[0]))
  expect(await reportersAmong(first)).toEqual(first)
})
