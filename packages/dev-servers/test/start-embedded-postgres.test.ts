import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { Client } from 'pg'
import { type EmbeddedPostgres, freePort, startEmbeddedPostgres, waitUntil } from '../src/index.ts'
import { findBinaries } from '../src/postgres-binaries.ts'
import { findServerUser } from '../src/postgres-process.ts'
import { stopByControlProgram } from '../src/start-embedded-postgres.ts'

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

  test('creates the data folder again when the process that creates it is killed, with safe defaults', async () => {
    const creator = startInChild()
    await waitUntil(async () => (await readdir(folder)).some((name) => name.startsWith('postgres.new-')))
    creator.kill('SIGKILL')
    await once(creator, 'exit')
    const server = await startEmbeddedPostgres({ dataDir })
    servers.push(server)
    expect(await readdir(folder)).toEqual(['postgres'])
    // Without settings, it listens on 127.0.0.1 only, and commits are durable.
    const show = `SELECT current_setting('listen_addresses') AS listen, current_setting('unix_socket_directories') AS sockets,
                         current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit`
    expect(await query(server.adminUrl, show)).toEqual([
      { listen: '127.0.0.1', sockets: '', fsync: 'on', commit: 'on' },
    ])
  })

  test('two starts at once: one gets the folder, the other an error', async () => {
    const outcomes = await Promise.allSettled([start(), start()])
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    const { reason } = outcomes.find(({ status }) => status === 'rejected') as PromiseRejectedResult
    expect(String(reason)).toContain(`${dataDir} is in use by another running instance`)
  })

  test('refuses a folder with other files and leaves them as they are', async () => {
    await mkdir(dataDir)
    await writeFile(join(dataDir, 'letter.txt'), 'dear …')
    await expect(start()).rejects.toThrow('contains files of something else')
    expect(await readFile(join(dataDir, 'letter.txt'), 'utf8')).toBe('dear …')
  })
})

describe('startEmbeddedPostgres', () => {
  beforeAll(async () => {
    await setUp()
    const server = await startEmbeddedPostgres({ dataDir, settings })
    await server.stop()
  })

  afterAll(tearDown)

  test('has a Unicode database: every letter has trigrams, text sorts by code point', async () => {
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

  test('ends cleanly by pg_ctl too, which stops it on Windows', async () => {
    const lines: string[] = []
    const server = await startEmbeddedPostgres({ dataDir, settings, log: (line) => lines.push(line) })
    servers.push(server)
    const user = await findServerUser()
    await stopByControlProgram({ ...(await findBinaries(user)), ...user, dataDir }, 'fast')
    expect(await server.exited).toEqual({ code: 0, signal: null })
    expect(lines.at(-1)).toContain('database system is shut down')
  })

  test('gives the application a role that is no superuser, and refuses a wrong password', async () => {
    const { url, adminUrl } = await start()
    expect(await query(url, 'SHOW is_superuser')).toEqual([{ is_superuser: 'off' }])
    expect(await query(adminUrl, 'SHOW is_superuser')).toEqual([{ is_superuser: 'on' }])
    for (const address of [url, adminUrl]) {
      const guessed = new URL(address)
      guessed.password = 'postgres'
      await expect(query(guessed.href, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })
    }
  })

  test('starts although the lock file has the pid of another program', async () => {
    const first = await start()
    await first.stop()
    await writeFile(join(dataDir, 'postmaster.pid'), `${process.pid}\n${dataDir}\n1795248291\n5432\n\n127.0.0.1\n`)
    const second = await start()
    expect(await query(second.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  test('rejects when the port is taken, and leaves no process', async () => {
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

  test('rejects data of another major version', async () => {
    const first = await start()
    await first.stop()
    await writeFile(join(dataDir, 'PG_VERSION'), '17\n')
    await expect(start()).rejects.toThrow(`${dataDir} was made by PostgreSQL 17 and this is PostgreSQL 18`)
  })
})

/** Starts the server in another process. */
function startInChild() {
  const module = new URL('../src/start-embedded-postgres.ts', import.meta.url).href
  const script = `
    import { startEmbeddedPostgres } from ${JSON.stringify(module)}
    await startEmbeddedPostgres(${JSON.stringify({ dataDir, settings })})`
  return spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' })
}
