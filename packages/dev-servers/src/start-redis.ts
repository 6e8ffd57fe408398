import { rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { findProgram } from './find-program.ts'
import { freePort } from './free-port.ts'
import { controlServer, type PrivateServer } from './private-server.ts'
import { findOrInstall } from './programs.ts'
import { makeRunFolder } from './run-folder.ts'
import { spawnGuarded } from './spawn-guarded.ts'
import { waitUntil } from './wait-until.ts'

/**
 * Starts Redis (or Valkey) on a free port of 127.0.0.1. It keeps nothing on disk, so a restart empties it. Takes about
 * 50 ms where one is installed. On Debian, root installs it first. Rejects when there is none.
 */
export async function startRedis(options: { log?: (line: string) => void } = {}): Promise<PrivateServer> {
  const program = await findOrInstall('Redis', findRedisFile, { advice: 'install redis-server', log: options.log })
  const folder = await makeRunFolder()
  const port = await freePort()
  const start = async () => {
    const server = await spawnGuarded({
      command: program,
      args: ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder],
      cwd: folder,
      deathSignal: 'SIGKILL',
    })
    await waitUntil(async () => await answersPing(port), { message: () => 'Redis to start' })
    return server
  }
  return controlServer(await start(), {
    url: `redis://127.0.0.1:${port}`,
    port,
    start,
    shutdownSignal: 'SIGKILL',
    stopSignal: 'SIGKILL',
    cleanUp: async () => await rm(folder, { recursive: true, force: true }),
  })
}

export async function findRedisFile(): Promise<string | undefined> {
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
