import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { Client } from 'pg'
import { type EmbeddedPostgres, freePort, startEmbeddedPostgres, waitUntil } from '../src/index.ts'

jest.setTimeout(120_000)

const settings = { fsync: 'off' }
let folder: string
let dataDir: string
let servers: EmbeddedPostgres[]

async function setUp(): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), 'embedded-postgres-'))
  dataDir = join(folder, 'postgres')
}

async function stopServers(): Promise<void> {
  await Promise.all(servers.map(async (server) => await server.stop('immediate')))
}

async function tearDown(): Promise<void> {
  await stopServers()
  await rm(folder, { recursive: true, force: true })
}

beforeEach(() => {
  servers = []
})

afterEach(stopServers)

async function start(options: { port?: number } = {}): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ dataDir, settings, ...options })
  servers.push(server)
  return server
}

async function query(url: string, ...statements: string[]): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    let rows: Record<string, unknown>[] = []
    for (const statement of statements) ({ rows } = await client.query<Record<string, unknown>>(statement))
    return rows
  } finally {
    await client.end()
  }
}

describe('startEmbeddedPostgres without data', () => {
  beforeEach(setUp)
  afterEach(tearDown)

  test('makes a half-made data folder anew', async () => {
    const gone = spawn(process.execPath, ['-e', ''])
    await once(gone, 'exit')
    await mkdir(join(`${dataDir}.new-${gone.pid}`, 'base'), { recursive: true })
    const { url } = await start()
    expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
    expect(await readdir(folder)).toEqual(['postgres'])
  })

  test('makes a whole folder when killed at any moment before', async () => {
    const maker = startInChild()
    await waitUntil(async () => (await readdir(folder)).some((name) => name.startsWith('postgres.new-')))
    maker.kill('SIGKILL')
    await once(maker, 'exit')
    const { url } = await start()
    expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
    expect(await readdir(folder)).toEqual(['postgres'])
  })

  test('lets exactly one of two that begin at once have the folder', async () => {
    const outcomes = await Promise.allSettled([start(), start()])
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    const { reason } = outcomes.find(({ status }) => status === 'rejected') as PromiseRejectedResult
    expect(String(reason)).toContain('is in use by another running instance')
  })

  test("leaves a folder with somebody else's files alone", async () => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'letter.txt'), 'dear …')
    await expect(start()).rejects.toThrow('holds files that are not of this service')
    expect(await readFile(join(dataDir, 'letter.txt'), 'utf8')).toBe('dear …')
  })

  test('listens on 127.0.0.1 only and keeps what is committed safe unless told otherwise', async () => {
    const server = await startEmbeddedPostgres({ dataDir })
    servers.push(server)
    const show = `SELECT current_setting('listen_addresses') AS listen, current_setting('unix_socket_directories') AS sockets,
                         current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit`
    expect(await query(server.adminUrl, show)).toEqual([
      { listen: '127.0.0.1', sockets: '', fsync: 'on', commit: 'on' },
    ])
  })
})

describe('startEmbeddedPostgres', () => {
  beforeAll(async () => {
    await setUp()
    const server = await startEmbeddedPostgres({ dataDir, settings })
    await server.stop()
  })

  afterAll(tearDown)

  test('serves a Unicode database: any letter has trigrams, names sort by code point', async () => {
    const { url } = await start()
    const [row] = await query(
      url,
      'CREATE EXTENSION pg_trgm',
      `SELECT pg_encoding_to_char(encoding) AS encoding, lower('ÄПΣ') AS folded, 'Z' < 'a' AND 'z' < 'ä' AS by_code_point,
              cardinality(show_trgm('привет')) AS trigrams
         FROM pg_database WHERE datname = current_database()`,
    )
    expect(row).toEqual({ encoding: 'UTF8', folded: 'äпσ', by_code_point: true, trigrams: 7 })
  })

  test('gives the application a role that is no superuser, and lets nobody in without the password', async () => {
    const { url, adminUrl } = await start()
    expect(await query(url, 'SHOW is_superuser')).toEqual([{ is_superuser: 'off' }])
    expect(await query(adminUrl, 'SHOW is_superuser')).toEqual([{ is_superuser: 'on' }])
    for (const address of [url, adminUrl]) {
      const guessed = new URL(address)
      guessed.password = 'postgres'
      await expect(query(guessed.href, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })
    }
  })

  test('keeps data and password from one start to the next, also when it was killed', async () => {
    const first = await start()
    await query(first.url, 'CREATE TABLE kept (id int)', 'INSERT INTO kept VALUES (1)')
    await first.stop()
    const second = await start({ port: first.port })
    expect(second.url).toBe(first.url)
    await query(second.url, 'INSERT INTO kept VALUES (2)')
    second.kill('SIGKILL')
    await second.exited
    const third = await start()
    expect(await query(third.url, 'SELECT id FROM kept ORDER BY id')).toEqual([{ id: 1 }, { id: 2 }])
  })

  test('takes over a lock whose pid belongs to another program by now', async () => {
    const first = await start()
    await first.stop()
    await writeFile(join(dataDir, 'postmaster.pid'), `${process.pid}\n${dataDir}\n1795248291\n5432\n\n127.0.0.1\n`)
    const second = await start()
    expect(await query(second.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  test('says which instance holds the folder when there is one', async () => {
    const { pid } = await start()
    const message = `${dataDir} is in use by another running instance (PostgreSQL pid ${pid}): stop that one first`
    await expect(start()).rejects.toMatchObject({ name: 'EmbeddedPostgresError', message })
  })

  test('says when the port is taken, and has nothing running then', async () => {
    const port = await freePort()
    const other = createServer().listen(port, '127.0.0.1')
    await once(other, 'listening')
    const message = `Port ${port} on 127.0.0.1 is taken: stop what listens there, or choose another port`
    await expect(start({ port })).rejects.toMatchObject({ message })
    other.close()
    await once(other, 'close')
    const { url } = await start({ port })
    expect(await query(url, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  test('stops although it is paused', async () => {
    const server = await start()
    server.kill('SIGSTOP')
    await server.stop()
    await expect(query(server.url, 'SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  test('ends in an orderly way when the process that started it is killed', async () => {
    const parent = startInChild()
    const lines = createInterface({ input: parent.stdout })
    const [line] = (await once(lines, 'line')) as [string]
    const { url } = JSON.parse(line) as { url: string }
    await query(url, 'CREATE TABLE written (id int)')
    parent.kill('SIGKILL')
    await waitUntil(async () => !(await readdir(dataDir)).includes('postmaster.pid'), { message: 'PostgreSQL to stop' })
    const again = await start()
    expect(await query(again.url, 'SELECT count(*)::int AS rows FROM written')).toEqual([{ rows: 0 }])
  })

  test('says when the data is of another major version', async () => {
    const first = await start()
    await first.stop()
    await writeFile(join(dataDir, 'PG_VERSION'), '17\n')
    await expect(start()).rejects.toThrow(`${dataDir} was made by PostgreSQL 17 and this is PostgreSQL 18`)
  })
})

function startInChild() {
  const module = new URL('../src/embedded-postgres.ts', import.meta.url).href
  const script = `
    import { startEmbeddedPostgres } from ${JSON.stringify(module)}
    const { url } = await startEmbeddedPostgres(${JSON.stringify({ dataDir, settings })})
    console.log(JSON.stringify({ url }))`
  return spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
}
