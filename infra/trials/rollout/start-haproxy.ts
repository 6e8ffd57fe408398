import { rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { findOrInstall, findProgram, freePort, makeRunFolder, spawnGuarded } from '@workflow-service/dev-servers'
import { waitUntil } from '@workflow-service/testkit'

/** One process behind a proxy. */
export interface ProxiedServer {
  /** On 127.0.0.1. */
  readonly port: number
  /** The port whose `/readyz` decides whether the process gets requests. */
  readonly checkPort: number
}

/** A running proxy in front of services. */
export interface Proxy {
  /** For each service, where its callers connect, without a slash at the end. */
  readonly urls: Readonly<Record<string, string>>
  /** Waits until every server of the service gets requests. */
  waitUntilUp(service: string): Promise<void>
  /** What it has written: each process that it has marked up or down, with the reason. */
  readonly log: string
  stop(): Promise<void>
}

/** A server starts within seconds, on a busy machine within a minute. */
const UP_TIMEOUT_MS = 60_000
/**
 * How often HAProxy checks a server, and how soon again after a failure. The second failure in a row takes its requests
 * away.
 */
const CHECK_INTERVAL_MS = 1_000
const RECHECK_INTERVAL_MS = 250
/** `/readyz` waits up to 2 s for PostgreSQL. A shorter limit would call every process dead while PostgreSQL is slow. */
const CHECK_TIMEOUT_MS = 3_000

/**
 * Starts HAProxy in front of services, each on a free port of 127.0.0.1. It checks `/readyz` and repeats no request, so
 * that a failed one reaches the caller. On Debian, root installs it first. Rejects when there is none.
 */
export async function startHaproxy(services: Readonly<Record<string, readonly ProxiedServer[]>>): Promise<Proxy> {
  const command = await findOrInstall('HAProxy', () => findProgram('haproxy'))
  const folder = await makeRunFolder()
  const ports = new Map<string, number>()
  for (const name of Object.keys(services)) ports.set(name, await freePort())
  const socket = join(folder, 'haproxy.sock')
  const file = join(folder, 'haproxy.cfg')
  const listeners = Object.entries(services).map(([name, servers]) =>
    [
      `listen ${name}`,
      `  bind 127.0.0.1:${ports.get(name)}`,
      ...servers.map(
        ({ port, checkPort }, index) => `  server ${name}-${index + 1} 127.0.0.1:${port} check port ${checkPort}`,
      ),
    ].join('\n'),
  )
  await writeFile(file, `${configOf(socket)}\n${listeners.join('\n')}\n`)
  const haproxy = await spawnGuarded({ command, args: ['-db', '-f', file], deathSignal: 'SIGKILL' })
  let output = ''
  haproxy.stderr.setEncoding('utf8').on('data', (more: string) => (output += more))
  const waitUntilUp = async (service: string): Promise<void> => {
    const expected = services[service]?.length ?? 0
    await waitUntil(async () => (await countUp(socket, service)) === expected, {
      timeoutMs: UP_TIMEOUT_MS,
      message: () => `HAProxy to reach every ${service}:\n${output}`,
    })
  }
  return {
    urls: Object.fromEntries([...ports].map(([name, port]) => [name, `http://127.0.0.1:${port}`])),
    waitUntilUp,
    get log() {
      return output
    },
    async stop() {
      haproxy.kill('SIGKILL')
      await haproxy.exited
      await rm(folder, { recursive: true, force: true })
    },
  }
}

// An unused connection is closed before the dispatcher closes it after 5 s, so that no request is sent on a closed one.
function configOf(socket: string): string {
  return `global
  stats socket ${socket}
defaults
  mode http
  retries 0
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout check ${CHECK_TIMEOUT_MS}ms
  option httpchk GET /readyz
  default-server inter ${CHECK_INTERVAL_MS}ms fastinter ${RECHECK_INTERVAL_MS}ms fall 2 rise 1 pool-purge-delay 2s`
}

/** The number of a service's servers that get requests. */
async function countUp(path: string, service: string): Promise<number> {
  const client = connect(path)
  client.end('show stat\n')
  const lines = (await text(client)).split('\n').map((line) => line.split(','))
  const status = lines[0]?.indexOf('status') ?? -1
  return lines.filter((line) => line[0] === service && line[1]?.startsWith(`${service}-`) && line[status] === 'UP')
    .length
}
