import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { migrate } from '@workflow-service/database'
import {
  type Answer,
  createTestBroker,
  createTestDatabase,
  freePort,
  type PrivatePostgres,
  type PrivateRabbitMq,
  type PrivateServer,
  startPostgres,
  startProcess,
  type StartedProcess,
  startRabbitMq,
} from '@workflow-service/testkit'
import { Pool } from 'pg'
import { send } from './load.ts'
import { type Arrival, startReceiver } from './receiver.ts'

const TOKEN = randomBytes(24).toString('base64')
export const SECRETS_KEY = randomBytes(32).toString('base64')

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

export const SERVICES = ['gateway', 'dispatcher', 'runner', 'app'] as const
export type ServiceName = (typeof SERVICES)[number]
/** `compact` is runner and dispatcher in one process. */
export type ProcessName = ServiceName | 'compact'

/** What incidents do to a service or a server. */
export type Killable = Pick<PrivateServer, 'kill' | 'restart' | 'pause' | 'resume'>

/** A service, which incidents may hit. */
export type Service = Awaited<ReturnType<typeof startService>>

export interface ServiceOptions {
  /**
   * Beside what every service gets. `PORT` and `METRICS_PORT` are free ports by default, `DISPATCHER_URL` the first
   * dispatcher.
   */
  readonly env?: Readonly<Record<string, string>>
  /** Maximum open files and sockets, as `ulimit -n` sets it. Default: the limit of this process. */
  readonly openFiles?: number
  /** A program and its arguments, for Node. Default: the service's start script. */
  readonly program?: readonly string[]
}

export interface SystemOptions {
  /** The folder for a CPU profile of each service; default or empty: none. */
  readonly profile?: string | undefined
  /** Settings of PostgreSQL beside `POSTGRES_SETTINGS`. */
  readonly postgresSettings?: Readonly<Record<string, string>>
  /** Gives a migrated database, which is stopped with the system. Default: starts a server with these settings. */
  readonly openDatabase?: (() => Promise<PrivatePostgres>) | undefined
  /** Default: starts one. It is stopped with the system. */
  readonly rabbitMq?: Pick<PrivateRabbitMq, 'url' | 'managementUrl' | 'stop'> | undefined
  /** For every service. */
  readonly env?: Readonly<Record<string, string>>
  /** How the customers' endpoints answer. Default: by the path. */
  readonly answer?: (arrival: Arrival) => Answer
  /** Migrates the empty database. */
  readonly migrateBy?: ((databaseUrl: string) => Promise<unknown>) | undefined
  /** The command that starts a service. Default: its start script. */
  readonly commandOf?: (name: ProcessName, env: Readonly<Record<string, string>>) => { command: string; args: string[] }
}

/** PostgreSQL, RabbitMQ and the customers' endpoints of one trial, and functions that start services on them. */
export type System = Awaited<ReturnType<typeof startSystem>>

export async function startSystem(options: SystemOptions = {}) {
  const { profile, env: commonEnv, answer, openDatabase = startDatabase } = options
  const profiling = !profile ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(profile)}`]
  const [postgres, rabbitMq, receiver] = await Promise.all([
    openDatabase(options),
    options.rabbitMq ?? startRabbitMq(),
    startReceiver(answer),
  ])
  // As for the services: polling for the end of a run would take more of PostgreSQL's time than the run.
  const pool = new Pool({
    connectionString: postgres.url,
    max: 5,
    application_name: 'trial',
    options: '-c enable_seqscan=off',
  })
  // A trial may kill PostgreSQL.
  pool.on('error', () => {})
  const services: Service[] = []
  const scripts: StartedProcess[] = []
  let dispatcherUrl = ''

  /** Starts a service, and resolves when /readyz answers 200. */
  async function start(name: ProcessName, { env, openFiles, program }: ServiceOptions = {}): Promise<Service> {
    const folder = new URL(`../../../services/${name}/`, import.meta.url)
    const port = env?.['PORT'] ?? String(await freePort())
    const hasMetricsPort = name !== 'dispatcher' && name !== 'runner'
    const metricsPort = hasMetricsPort ? (env?.['METRICS_PORT'] ?? String(await freePort())) : port
    if (name === 'dispatcher' || name === 'compact') dispatcherUrl ||= `http://127.0.0.1:${port}`
    const shared = { DATABASE_URL: postgres.url, AMQP_URL: rabbitMq.url, ...SHARED_ENV, ...ENV_OF[name] }
    const ports = { PORT: port, METRICS_PORT: metricsPort, ...(name === 'compact' && { RUNNER_PORT: metricsPort }) }
    const args = [...profiling, ...(program ?? (await argumentsOfStartScript(folder)))]
    const serviceEnv = { ...shared, DISPATCHER_URL: dispatcherUrl, ...commonEnv, ...env, ...ports }
    const service = await startService(name, {
      ...(options.commandOf?.(name, serviceEnv) ?? withLimit(args, openFiles)),
      cwd: fileURLToPath(folder),
      env: serviceEnv,
    })
    services.push(service)
    return service
  }

  /** Runs a script that prints `listening PORT`, and resolves to its URL. */
  async function startScript(file: string, args: readonly string[] = []): Promise<string> {
    const script = await startProcess({
      args: [fileURLToPath(file), ...args],
      env: { NODE_ENV: 'production' },
      readyWhen: { line: 'listening' },
    })
    scripts.push(script)
    return `http://127.0.0.1:${/listening (\d+)/.exec(script.stdout)?.[1]}`
  }

  const stopServices = async (): Promise<void> => {
    await Promise.all([...services.map(({ process }) => process), ...scripts].map((each) => each.stop()))
  }

  return {
    postgres,
    rabbitMq,
    receiver,
    pool,
    /** For calls of the dispatcher's internal API. */
    internalHeaders: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    /** Those that were started, in this order. */
    services,
    urlsOf: (name: ProcessName): string[] => services.flatMap((each) => (each.name === name ? each.url : [])),
    /** Of the first dispatcher. */
    internalUrl: (): string => dispatcherUrl,
    start,
    startScript,
    stopServices,
    /** Stops everything that was started here. */
    async [Symbol.asyncDispose]() {
      await stopServices()
      await pool.end()
      await Promise.all([postgres.stop(), rabbitMq.stop(), receiver.close()])
    },
  }
}

/** Starts a system on a database and a virtual host of the servers that all tests of a Jest run share. */
export async function startTestSystem(options: SystemOptions = {}): Promise<System> {
  const broker = await createTestBroker()
  return await startSystem({ ...options, openDatabase: openShared, rabbitMq: { ...broker, stop: broker.drop } })
}

/** Nothing may be done to the server. */
async function openShared(): Promise<PrivatePostgres> {
  const { url, drop } = await createTestDatabase()
  return { url, stop: drop } as PrivatePostgres
}

async function startDatabase({ postgresSettings, migrateBy }: SystemOptions): Promise<PrivatePostgres> {
  const postgres = await startPostgres({ settings: { ...POSTGRES_SETTINGS, ...postgresSettings } })
  await (migrateBy?.(postgres.url) ?? migrate({ databaseUrl: postgres.url }))
  return postgres
}

/** Runs a query that selects one number, named `value`. */
export async function readNumber(pool: Pick<Pool, 'query'>, query: string, values?: unknown[]): Promise<number> {
  return (await pool.query<{ value: number }>(query, values)).rows[0]!.value
}

/** Reads a metric of a service: its first sample, of those with the label if one is given. */
export async function readMetric({ metricsUrl }: Service, name: string, label = ''): Promise<number> {
  const metrics = await send(`${metricsUrl}/metrics`)
  return Number(new RegExp(`^${name}(?:\\{.*${label}.*\\})? (\\S+)$`, 'm').exec(metrics)?.[1])
}

/**
 * Opens the database on one connection without checks of foreign keys, which take most of the time of large inserts.
 * Only a superuser can leave them out.
 */
export function openUnchecked({ url, adminUrl }: PrivatePostgres): Pool {
  const { username, password } = new URL(adminUrl)
  const connectionString = Object.assign(new URL(url), { username, password }).href
  return new Pool({ connectionString, max: 1, options: '-c session_replication_role=replica' })
}

const SHARED_ENV = { HOST: '127.0.0.1', LOG_LEVEL: 'warn', NODE_ENV: 'production', INTERNAL_API_TOKEN: TOKEN }
const DISPATCHER_ENV = { SECRETS_KEY, WEBHOOK_ALLOWED_SUBNETS: '127.0.0.0/8' }
const ENV_OF: Readonly<Record<ProcessName, Readonly<Record<string, string>>>> = {
  gateway: { RATE_LIMIT_PER_MINUTE: '0' },
  dispatcher: DISPATCHER_ENV,
  compact: DISPATCHER_ENV,
  runner: {},
  app: {},
}

/** Starts a service of which the environment names the ports. */
async function startService(
  name: ProcessName,
  options: { command?: string; args: string[]; cwd: string; env: Readonly<Record<string, string>> },
) {
  const metricsUrl = `http://127.0.0.1:${options.env['METRICS_PORT']}`
  const processes: StartedProcess[] = []
  const launch = async (): Promise<void> => {
    const readyWhen = { url: `${metricsUrl}/readyz` }
    processes.push(await startProcess({ ...options, readyWhen, timeoutMs: BOOT_TIMEOUT_MS }))
  }
  const last = (): StartedProcess => processes.at(-1)!
  const startedAt = performance.now()
  await launch()
  return {
    name,
    url: `http://127.0.0.1:${options.env['PORT']}`,
    /** The base URL of /readyz and /metrics. */
    metricsUrl,
    /** From the start of the process until /readyz answers 200. */
    bootMs: performance.now() - startedAt,
    /** Another one after each restart. */
    get process() {
      return last()
    },
    async kill(signal: NodeJS.Signals = 'SIGKILL') {
      last().kill(signal)
      await last().exited
    },
    restart: launch,
    pause: () => void last().kill('SIGSTOP'),
    resume: () => void last().kill('SIGCONT'),
    /** What all its processes have written. */
    output: () => processes.map(({ stdout, stderr }) => `--- ${name}\n${stdout}${stderr}`).join('\n'),
  }
}

/** Node with these arguments; with a limit a shell sets it and becomes Node, so the process id is Node's. */
function withLimit(args: string[], openFiles: number | undefined): { command?: string; args: string[] } {
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
