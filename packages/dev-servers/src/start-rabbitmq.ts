import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { searchPath } from './find-program.ts'
import { findRabbitMq } from './find-rabbitmq.ts'
import { freePort } from './free-port.ts'
import { controlServer, type PrivateServer } from './private-server.ts'
import { callManagementApi } from './rabbitmq-management.ts'
import { makeRunFolder } from './run-folder.ts'
import { type GuardedProcess, spawnGuarded } from './spawn-guarded.ts'
import { waitUntil } from './wait-until.ts'

/** A RabbitMQ node that one test owns. `url` is the virtual host "/" as guest. */
export interface PrivateRabbitMq extends PrivateServer {
  /** The management API, with credentials in the URL. */
  managementUrl: string
}

export interface RabbitMqOptions {
  readonly log?: (line: string) => void
  /** Where the node runs, at the usual ports. Default: on free ports of 127.0.0.1. */
  readonly network?: { readonly namespace: string; readonly address: string }
  /** Further lines of rabbitmq.conf. */
  readonly settings?: readonly string[]
  /** Further arguments of Erlang. */
  readonly erlangArguments?: string
}

/** Less than the limits of Jest's hooks, which hide the reason. */
const START_TIMEOUT_MS = 120_000
/** Of the nodes of a cluster, which start at once. */
const NETWORK_START_TIMEOUT_MS = 240_000

/** `distribution` is for Erlang's connections between nodes, `epmd` its name server. */
const USUAL_PORTS = { amqp: 5672, management: 15_672, distribution: 25_672, epmd: 4369 }

/**
 * Starts a RabbitMQ node with its own data, cookie and name server (epmd), so that it never meets the system's node.
 * Takes about 5 s. Works with RabbitMQ 3.10 to 4.x. A kill loses what the node had not yet written: with 3.x a queue
 * declared in the last seconds, with any version messages that it had not confirmed.
 */
export async function startRabbitMq(options: RabbitMqOptions = {}): Promise<PrivateRabbitMq> {
  const { log, network } = options
  const programs = await findRabbitMq(log)
  const folder = await makeRunFolder()
  const address = network?.address ?? '127.0.0.1'
  const ports = network
    ? USUAL_PORTS
    : {
        amqp: await freePort(),
        management: await freePort(),
        distribution: await freePort(),
        epmd: await freePort(),
      }
  const env = await configure(folder, address, ports, options)
  const managementUrl = `http://guest:guest@${address}:${ports.management}`
  const inNetwork = network ? ['ip', 'netns', 'exec', network.namespace] : []
  const spawn = async (program: string, ...programArgs: string[]) => {
    const [command = '', ...args] = [...inNetwork, program, ...programArgs]
    return await spawnGuarded({ command, args, env, cwd: folder, deathSignal: 'SIGKILL' })
  }

  const epmd = await spawn(programs.epmd, '-port', String(ports.epmd), '-address', address)
  const start = async () => {
    const node = await spawn(programs.server)
    try {
      await untilReady(node, ports.amqp, managementUrl, network ? NETWORK_START_TIMEOUT_MS : START_TIMEOUT_MS)
      return node
    } catch (error) {
      node.kill('SIGKILL')
      await node.exited
      throw error
    }
  }
  const cleanUp = async () => {
    epmd.kill('SIGKILL')
    await epmd.exited
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
  }
  try {
    const server = controlServer(await start(), {
      url: `amqp://guest:guest@${address}:${ports.amqp}`,
      start,
      shutdownSignal: 'SIGTERM',
      stopSignal: 'SIGKILL',
      cleanUp,
    })
    return Object.assign(server, { managementUrl })
  } catch (error) {
    await cleanUp()
    throw error
  }
}

/** Writes the node's configuration files. Resolves to the environment that makes the node use them, and no others. */
async function configure(
  folder: string,
  address: string,
  ports: typeof USUAL_PORTS,
  { settings = [], erlangArguments = '' }: RabbitMqOptions,
): Promise<Record<string, string>> {
  await mkdir(join(folder, 'home'))
  await writeFile(join(folder, 'enabled_plugins'), '[rabbitmq_management].\n')
  await writeFile(
    join(folder, 'rabbitmq.conf'),
    [
      `listeners.tcp.1 = ${address}:${ports.amqp}`,
      `management.tcp.ip = ${address}`,
      `management.tcp.port = ${ports.management}`,
      'log.console = true',
      'log.console.level = warning',
      'log.file = false',
      'disk_free_limit.absolute = 50MB',
      ...settings,
      '',
    ].join('\n'),
  )
  return {
    PATH: searchPath,
    LANG: 'C.UTF-8',
    HOME: join(folder, 'home'),
    ERL_EPMD_PORT: String(ports.epmd),
    ERL_EPMD_ADDRESS: address,
    RABBITMQ_NODENAME: `rabbit@${address}`,
    RABBITMQ_USE_LONGNAME: 'true',
    RABBITMQ_DIST_PORT: String(ports.distribution),
    // Without busy waiting, a start takes 3.4 s of processor time instead of 5.
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: `-kernel inet_dist_use_interface {${address.replaceAll('.', ',')}} +sbwt none +sbwtdcpu none +sbwtdio none ${erlangArguments}`,
    RABBITMQ_CONF_ENV_FILE: join(folder, 'none'),
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(folder, 'none'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
    RABBITMQ_MNESIA_BASE: join(folder, 'data'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_GENERATED_CONFIG_DIR: join(folder, 'config'),
    RABBITMQ_SCHEMA_DIR: join(folder, 'schema'),
    RABBITMQ_LOGS: '-',
    // Makes the start script exec the node: otherwise the script's shell stays its parent and receives the signals.
    RUNNING_UNDER_SYSTEMD: 'true',
  }
}

/** Waits until the node accepts connections: it opens its AMQP listener last. */
async function untilReady(node: GuardedProcess, port: number, managementUrl: string, timeoutMs: number): Promise<void> {
  const lastLines: string[] = []
  for (const stream of [node.stdout, node.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      if (lastLines.push(line) > 40) lastLines.shift()
    })
  }
  const ended = node.exited.then(({ code, signal }) => {
    throw new Error(`RabbitMQ ended while it started (${signal ?? `exit ${code}`}):\n${lastLines.join('\n')}`)
  })
  const check = async () => await callManagementApi(managementUrl, 'GET', `/api/health/checks/port-listener/${port}`)
  const ready = waitUntil(async () => (await check()).ok, {
    timeoutMs,
    intervalMs: 100,
    message: () => `RabbitMQ to start:\n${lastLines.join('\n')}`,
  })
  await Promise.race([ready, ended])
  ended.catch(() => {})
}
