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

/** PostgreSQL with its default durability: a commit waits for the disk. */
export const POSTGRES_SETTINGS = {
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  shared_buffers: '256MB',
  max_wal_size: '2GB',
}

/** A runner is ready only when RabbitMQ is, which takes a while to start on a busy machine. */
const BOOT_TIMEOUT_MS = 120_000

/** A service in a child process. */
export interface Service {
  /** Another one after each restart. */
  readonly process: StartedProcess
  readonly url: string
  /** The base URL of /readyz and /metrics. */
  readonly metricsUrl: string
  /** From the start of the process until /readyz answers 200. */
  readonly bootMs: number
  /** Starts the process again, on the same ports, after it has ended. Resolves when /readyz answers 200. */
  restart(): Promise<void>
}

/** Limits of the operating system for a service's process. */
export interface ProcessLimits {
  /** Maximum open files and sockets, as `ulimit -n` sets it. Default: the limit of this process. */
  readonly openFiles?: number
}

/**
 * PostgreSQL and RabbitMQ for one part of the benchmark, and functions that start services on them. A service gets free
 * ports, unless `env` has `PORT` and `METRICS_PORT`.
 */
export interface Environment {
  readonly postgres: PrivatePostgres
  readonly rabbitMq: Pick<PrivateRabbitMq, 'url' | 'managementUrl' | 'stop'>
  readonly client: Client
  /** For calls of the dispatcher's internal API. */
  readonly internalHeaders: Record<string, string>
  startGateway(env?: Record<string, string>, limits?: ProcessLimits): Promise<Service>
  startDispatcher(env?: Record<string, string>, limits?: ProcessLimits): Promise<Service>
  startRunner(dispatcherUrl: string, env?: Record<string, string>): Promise<Service>
  startApp(dispatcherUrl: string, env?: Record<string, string>): Promise<Service>
  /** Runs a script that prints `listening PORT`. Its path is absolute, or relative to this folder. */
  startScript(script: string, args?: string[]): Promise<{ process: StartedProcess; url: string }>
  /** Stops everything that was started here. */
  close(): Promise<void>
}

/** Options of `startEnvironment`. */
export interface EnvironmentOptions {
  /** The folder for a CPU profile of each service; undefined for none. */
  readonly profile?: string | undefined
  /** Settings of PostgreSQL beside those that every environment has. */
  readonly postgresSettings?: Record<string, string>
  /** Default: starts one. It is stopped with the environment. */
  readonly rabbitMq?: Pick<PrivateRabbitMq, 'url' | 'managementUrl' | 'stop'>
}

export async function startEnvironment(options: EnvironmentOptions): Promise<Environment> {
  const { profile, postgresSettings } = options
  const profiling = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(profile)}`]
  const [postgres, rabbitMq] = await Promise.all([
    startPostgres({ settings: { ...POSTGRES_SETTINGS, ...postgresSettings } }),
    options.rabbitMq ?? startRabbitMq(),
  ])
  await migrate({ databaseUrl: postgres.url })
  const client = new Client({ connectionString: postgres.url })
  await client.connect()
  const started: Pick<StartedProcess, 'stop'>[] = []
  const commonEnv = {
    DATABASE_URL: postgres.url,
    AMQP_URL: rabbitMq.url,
    HOST: '127.0.0.1',
    LOG_LEVEL: 'warn',
    NODE_ENV: 'production',
  }

  async function startService(
    name: string,
    env: Record<string, string>,
    ports: { port: number; readyPort: number },
    limits: ProcessLimits = {},
  ): Promise<Service> {
    const folder = new URL(`../../../services/${name}/`, import.meta.url)
    const metricsUrl = `http://127.0.0.1:${ports.readyPort}`
    const launch = async (): Promise<StartedProcess> =>
      await startProcess({
        ...withLimits([...profiling, ...(await argumentsOfStartScript(folder))], limits),
        cwd: fileURLToPath(folder),
        env: { ...commonEnv, PORT: String(ports.port), ...env },
        readyWhen: { url: `${metricsUrl}/readyz` },
        timeoutMs: BOOT_TIMEOUT_MS,
      })
    const startedAt = performance.now()
    let process = await launch()
    const bootMs = performance.now() - startedAt
    started.push({ stop: async (timeoutMs) => await process.stop(timeoutMs) })
    return {
      get process() {
        return process
      },
      url: `http://127.0.0.1:${ports.port}`,
      metricsUrl,
      bootMs,
      async restart() {
        process = await launch()
      },
    }
  }

  return {
    postgres,
    rabbitMq,
    client,
    internalHeaders: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    async startGateway(env = {}, limits) {
      const [port, readyPort] = [await portIn(env, 'PORT'), await portIn(env, 'METRICS_PORT')]
      const ownEnv = { METRICS_PORT: String(readyPort), RATE_LIMIT_PER_MINUTE: '0' }
      return startService('gateway', { ...ownEnv, ...env }, { port, readyPort }, limits)
    },
    async startDispatcher(env = {}, limits) {
      const port = await portIn(env, 'PORT')
      const ownEnv = { INTERNAL_API_TOKEN: TOKEN, SECRETS_KEY, WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8' }
      return startService('dispatcher', { ...ownEnv, ...env }, { port, readyPort: port }, limits)
    },
    async startRunner(dispatcherUrl, env = {}) {
      const port = await portIn(env, 'PORT')
      const ownEnv = { INTERNAL_API_TOKEN: TOKEN, DISPATCHER_URL: dispatcherUrl }
      return startService('runner', { ...ownEnv, ...env }, { port, readyPort: port })
    },
    async startApp(dispatcherUrl, env = {}) {
      const [port, readyPort] = [await portIn(env, 'PORT'), await portIn(env, 'METRICS_PORT')]
      const ownEnv = { METRICS_PORT: String(readyPort), INTERNAL_API_TOKEN: TOKEN, DISPATCHER_URL: dispatcherUrl }
      return startService('app', { ...ownEnv, ...env }, { port, readyPort })
    },
    async startScript(script, args = []) {
      const process = await startProcess({
        args: [fileURLToPath(new URL(script, import.meta.url)), ...args],
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

async function portIn(env: Record<string, string>, name: 'PORT' | 'METRICS_PORT'): Promise<number> {
  return env[name] === undefined ? await freePort() : Number(env[name])
}

/** Node with these arguments; with a limit a shell sets it and becomes Node, so the process id is Node's. */
function withLimits(args: string[], { openFiles }: ProcessLimits): { command?: string; args: string[] } {
  if (openFiles === undefined) return { args }
  return { command: '/bin/sh', args: ['-c', `ulimit -n ${openFiles} && exec "$0" "$@"`, process.execPath, ...args] }
}

/** The arguments of a service's start script. Run without pnpm, whose process would be measured instead of Node's. */
async function argumentsOfStartScript(folder: URL): Promise<string[]> {
  const text = await readFile(new URL('package.json', folder), 'utf8')
  const { scripts } = JSON.parse(text) as { scripts: { start: string } }
  const [command, ...args] = scripts.start.split(' ')
  if (command !== 'node') throw new Error(`${folder.pathname}: the start script does not begin with "node"`)
  return args
}
