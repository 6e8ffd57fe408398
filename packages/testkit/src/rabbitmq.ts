import { once } from 'node:events'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { spawnGuarded, type GuardedProcess } from '@workflow-service/database/embedded-postgres'
import { readConfig } from './config.ts'
import { freePort } from './free-port.ts'
import { findRabbitMq } from './rabbitmq-installation.ts'
import { makeRunFolder } from './run-folder.ts'
import { waitUntil } from './wait-until.ts'

/** A RabbitMQ of one's own, to be killed and paused. Its addresses and data stay the same over restarts. */
export interface PrivateRabbitMq {
  /** The virtual host "/" as guest. */
  url: string
  /** The management API, with credentials in the address. */
  managementUrl: string
  port: number
  readonly pid: number
  /** Signals the node and, unless the signal is STOP or CONT, waits until it is gone. */
  kill: (signal?: NodeJS.Signals) => Promise<void>
  /** Stops the node if it runs, starts it again on the same data and ports, and waits until it takes connections. */
  restart: () => Promise<void>
  /** SIGSTOP: connections stay open, nothing is answered. */
  pause: () => void
  resume: () => void
  /** Ends it for good and removes its data. */
  stop: () => Promise<void>
}

const startTimeoutMs = 120_000

/**
 * Starts a RabbitMQ node on free ports of 127.0.0.1 with its own data, cookie and name server (epmd), so that it never
 * meets a node of the system. Takes about 5 s. Works with RabbitMQ 3.10 to 4.x. A kill takes what the node had not yet
 * written: with 3.x a queue declared in the last seconds, with any version what was not confirmed.
 */
export async function startRabbitMq(options: { say?: (line: string) => void } = {}): Promise<PrivateRabbitMq> {
  const installation = await findRabbitMq(options.say ?? (() => {}))
  const folder = await makeRunFolder()
  const [port, managementPort, distributionPort, epmdPort] = [
    await freePort(),
    await freePort(),
    await freePort(),
    await freePort(),
  ]
  await mkdir(join(folder, 'home'))
  await writeFile(join(folder, 'enabled_plugins'), '[rabbitmq_management].\n')
  await writeFile(
    join(folder, 'rabbitmq.conf'),
    [
      `listeners.tcp.1 = 127.0.0.1:${port}`,
      'management.tcp.ip = 127.0.0.1',
      `management.tcp.port = ${managementPort}`,
      'log.console = true',
      'log.console.level = warning',
      'log.file = false',
      'disk_free_limit.absolute = 50MB',
      '',
    ].join('\n'),
  )
  const env = {
    PATH: readConfig().path,
    LANG: 'C.UTF-8',
    HOME: join(folder, 'home'),
    ERL_EPMD_PORT: String(epmdPort),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_NODENAME: `test-${port}@localhost`,
    RABBITMQ_DIST_PORT: String(distributionPort),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
    RABBITMQ_CONF_ENV_FILE: join(folder, 'none'),
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(folder, 'none'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
    RABBITMQ_MNESIA_BASE: join(folder, 'data'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_GENERATED_CONFIG_DIR: join(folder, 'config'),
    RABBITMQ_SCHEMA_DIR: join(folder, 'schema'),
    RABBITMQ_LOGS: '-',
    // Otherwise a shell stays in front of the node and takes the signals.
    RUNNING_UNDER_SYSTEMD: 'true',
  }
  const managementUrl = `http://guest:guest@127.0.0.1:${managementPort}`
  const epmd = await spawnGuarded({
    command: installation.epmd,
    args: ['-port', String(epmdPort), '-address', '127.0.0.1'],
    env,
    cwd: folder,
    deathSignal: 'SIGKILL',
  })
  const start = async () => {
    const node = await spawnGuarded({
      command: installation.server,
      args: [],
      env,
      cwd: folder,
      deathSignal: 'SIGKILL',
    })
    try {
      await untilReady(node, port, managementUrl)
      return node
    } catch (error) {
      node.kill('SIGKILL')
      throw error
    }
  }
  const end = async () => {
    node?.kill('SIGKILL')
    epmd.kill('SIGKILL')
    await Promise.all([node?.exited, epmd.exited])
    await rm(folder, { recursive: true, force: true })
  }
  let node: GuardedProcess | undefined
  try {
    node = await start()
  } catch (error) {
    await end()
    throw error
  }
  return {
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    managementUrl,
    port,
    get pid() {
      return node!.pid
    },
    async kill(signal = 'SIGKILL') {
      node!.kill(signal)
      if (signal === 'SIGSTOP' || signal === 'SIGCONT') return
      // A paused node takes no other signal.
      node!.kill('SIGCONT')
      await node!.exited
    },
    async restart() {
      node!.kill('SIGTERM')
      node!.kill('SIGCONT')
      await node!.exited
      node = await start()
    },
    pause: () => void node!.kill('SIGSTOP'),
    resume: () => void node!.kill('SIGCONT'),
    stop: end,
  }
}

async function untilReady(node: GuardedProcess, port: number, managementUrl: string): Promise<void> {
  const said: string[] = []
  for (const stream of [node.stdout, node.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      if (said.push(line) > 40) said.shift()
    })
  }
  const ended = node.exited.then(({ code, signal }) => {
    throw new Error(`RabbitMQ ended while it started (${signal ?? `exit ${code}`}):\n${said.join('\n')}`)
  })
  const ready = waitUntil(async () => (await greets(port)) && (await isManaged(managementUrl)), {
    timeoutMs: startTimeoutMs,
    intervalMs: 100,
    message: () => `RabbitMQ to start:\n${said.join('\n')}`,
  })
  await Promise.race([ready, ended])
  ended.catch(() => {})
}

/** Whether an AMQP 0-9-1 broker answers the protocol header, which it does only when it takes connections. */
export async function greets(port: number, host = '127.0.0.1'): Promise<boolean> {
  const socket = connect(port, host)
  socket.setTimeout(2000, () => socket.destroy(new Error('no answer')))
  try {
    await once(socket, 'connect')
    socket.write(Buffer.from('AMQP\0\0\x09\x01', 'latin1'))
    const [frame] = (await once(socket, 'data')) as [Buffer]
    return frame[0] === 1
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

async function isManaged(managementUrl: string): Promise<boolean> {
  const answer = await callManagement(managementUrl, 'GET', '/api/overview')
  return answer.ok
}

/** One call of the management API; the credentials are taken from the address. */
export async function callManagement(
  managementUrl: string,
  method: string,
  path: string,
  body?: unknown,
): Promise<Response> {
  const { username, password, origin } = new URL(managementUrl)
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return await fetch(origin + path, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
      'content-type': 'application/json',
      // A connection kept since an earlier call may be closing just now.
      connection: 'close',
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  })
}
