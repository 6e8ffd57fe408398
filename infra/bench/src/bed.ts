import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migrate } from '@workflow-service/database'
import {
  freePort,
  type PrivatePostgres,
  type PrivateRabbitMq,
  startPostgres,
  startProcess,
  type StartedProcess,
  startRabbitMq,
} from '@workflow-service/testkit'
import { Client } from 'pg'

const TOKEN = randomBytes(24).toString('base64')
const SECRETS_KEY = randomBytes(32).toString('base64')

/** A service as a process of its own. */
export interface Service {
  readonly process: StartedProcess
  readonly url: string
  /** From the start of the process to its first `ready`. */
  readonly bootMs: number
}

/** Real servers and services for one part of the benchmark; everything that it starts ends with `close`. */
export interface Bed {
  readonly postgres: PrivatePostgres
  readonly rabbitMq: PrivateRabbitMq
  readonly client: Client
  /** Internal API headers. */
  readonly internalHeaders: Record<string, string>
  gateway(): Promise<Service>
  dispatcher(env?: Record<string, string>): Promise<Service>
  runner(dispatcherUrl: string, env?: Record<string, string>): Promise<Service>
  /** A script of this room that prints `listening PORT`. */
  helper(script: string, args: string[]): Promise<{ process: StartedProcess; url: string }>
  close(): Promise<void>
}

/** What `pnpm --filter … start` runs, without pnpm: its process would be the one that is measured. */
async function startArguments(folder: URL): Promise<string[]> {
  const text = await readFile(new URL('package.json', folder), 'utf8')
  const { scripts } = JSON.parse(text) as { scripts: { start: string } }
  const [command, ...args] = scripts.start.split(' ')
  if (command !== 'node') throw new Error(`${folder.pathname}: the start script does not begin with "node"`)
  return args
}

/** Postgres keeps every guarantee here: fsync, full pages and synchronous commits are on. */
const DURABLE = {
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  shared_buffers: '256MB',
  max_wal_size: '2GB',
}

/** Where each service's CPU profile goes, if any, and settings of Postgres beside the durable ones. */
export interface BedOptions {
  readonly profile?: string | undefined
  readonly postgresSettings?: Record<string, string> | undefined
}

export async function createBed({ profile, postgresSettings }: BedOptions = {}): Promise<Bed> {
  const profiling = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(profile)}`]
  const [postgres, rabbitMq] = await Promise.all([
    startPostgres({ settings: { ...DURABLE, ...postgresSettings } }),
    startRabbitMq(),
  ])
  await migrate({ databaseUrl: postgres.url })
  const client = new Client({ connectionString: postgres.url })
  await client.connect()
  const started: StartedProcess[] = []
  const common = {
    DATABASE_URL: postgres.url,
    AMQP_URL: rabbitMq.url,
    HOST: '127.0.0.1',
    LOG_LEVEL: 'warn',
    NODE_ENV: 'production',
  }

  async function service(name: string, env: Record<string, string>, readyPort: number, port: number): Promise<Service> {
    const begun = performance.now()
    const folder = new URL(`../../../services/${name}/`, import.meta.url)
    const process = await startProcess({
      args: [...profiling, ...(await startArguments(folder))],
      cwd: fileURLToPath(folder),
      env: { ...common, ...env },
      readyWhen: { url: `http://127.0.0.1:${readyPort}/readyz` },
    })
    started.push(process)
    return { process, url: `http://127.0.0.1:${port}`, bootMs: performance.now() - begun }
  }

  return {
    postgres,
    rabbitMq,
    client,
    internalHeaders: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    async gateway() {
      const [port, metricsPort] = [await freePort(), await freePort()]
      const env = { PORT: String(port), METRICS_PORT: String(metricsPort), RATE_LIMIT_PER_MINUTE: '0' }
      return service('gateway', env, metricsPort, port)
    },
    async dispatcher(env = {}) {
      const port = await freePort()
      const own = { PORT: String(port), INTERNAL_API_TOKEN: TOKEN, SECRETS_KEY, WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8' }
      return service('dispatcher', { ...own, ...env }, port, port)
    },
    async runner(dispatcherUrl, env = {}) {
      const port = await freePort()
      return service(
        'runner',
        { PORT: String(port), INTERNAL_API_TOKEN: TOKEN, DISPATCHER_URL: dispatcherUrl, ...env },
        port,
        port,
      )
    },
    async helper(script, args) {
      const process = await startProcess({
        args: [new URL(script, import.meta.url).pathname, ...args],
        env: { NODE_ENV: 'production' },
        readyWhen: { line: 'listening' },
      })
      started.push(process)
      const port = /listening (\d+)/.exec(process.stdout)?.[1]
      return { process, url: `http://127.0.0.1:${port}` }
    },
    async close() {
      await Promise.all(started.map((process) => process.stop()))
      await client.end()
      await Promise.all([postgres.stop(), rabbitMq.stop()])
    },
  }
}
