import { connect } from 'node:net'
import { rm } from 'node:fs/promises'
import { spawnGuarded, type GuardedProcess } from '@workflow-service/database/embedded-postgres'
import { findProgram, installOnDebian } from './debian-package.ts'
import { freePort } from './free-port.ts'
import { makeRunFolder } from './run-folder.ts'
import { waitUntil } from './wait-until.ts'

/** A Redis (or Valkey) of one's own, to be killed and paused. Its address stays the same over restarts; its data does not. */
export interface PrivateRedis {
  url: string
  port: number
  readonly pid: number
  /** Signals the server and waits until it is gone. */
  kill: (signal?: NodeJS.Signals) => Promise<void>
  /** Starts it again, after ending it if it runs, and waits until it answers. */
  restart: () => Promise<void>
  /** SIGSTOP: connections stay open, nothing is answered. */
  pause: () => void
  resume: () => void
  /** Ends it for good. */
  stop: () => Promise<void>
}

/** Starts a Redis on a free port of 127.0.0.1, which keeps nothing on disk. Takes about 50 ms where one is installed. */
export async function startRedis(options: { say?: (line: string) => void } = {}): Promise<PrivateRedis> {
  const program = await findRedis(options.say ?? (() => {}))
  const folder = await makeRunFolder()
  const port = await freePort()
  const start = async (): Promise<GuardedProcess> => {
    const server = await spawnGuarded({
      command: program,
      args: ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder],
      cwd: folder,
      deathSignal: 'SIGKILL',
    })
    await waitUntil(async () => await answersPing(port), { message: () => 'Redis to start' })
    return server
  }
  let server = await start()
  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    server.kill(signal)
    // A paused server takes no other signal.
    server.kill('SIGCONT')
    await server.exited
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return server.pid
    },
    kill,
    async restart() {
      await kill()
      server = await start()
    },
    pause: () => void server.kill('SIGSTOP'),
    resume: () => void server.kill('SIGCONT'),
    async stop() {
      await kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** An installed one, or on Debian as root one that is installed now. Tests that need it never skip. */
async function findRedis(say: (line: string) => void): Promise<string> {
  const found = await locate()
  if (found) return found
  const failure = await installOnDebian('redis-server', say)
  const installed = await locate()
  if (installed) return installed
  throw new Error(
    `These tests need Redis or Valkey and there is none here${failure ? ` (${failure})` : ''}: install redis-server`,
  )
}

async function locate(): Promise<string | undefined> {
  return (await findProgram('redis-server')) ?? (await findProgram('valkey-server'))
}

async function answersPing(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect({ port, host: '127.0.0.1' }, () => socket.write('PING\r\n'))
  socket.setTimeout(1_000, () => resolve(false))
  socket.once('data', (bytes) => resolve(bytes.toString().startsWith('+PONG')))
  socket.once('error', () => resolve(false))
  try {
    return await promise
  } finally {
    socket.destroy()
  }
}
