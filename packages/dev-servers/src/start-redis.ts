import { once } from 'node:events'
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
export async function startRedis(): Promise<PrivateServer> {
  const program = await findRedis()
  const folder = await makeRunFolder()
  const port = await freePort()
  const start = async () => {
    const server = await spawnGuarded({
      command: program,
      args: ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder],
      cwd: folder,
      deathSignal: 'SIGKILL',
    })
    await waitUntil(async () => await canConnect(port), { message: 'Redis to start' })
    return server
  }
  return controlServer(await start(), {
    url: `redis://127.0.0.1:${port}`,
    start,
    shutdownSignal: 'SIGKILL',
    stopSignal: 'SIGKILL',
    cleanUp: async () => await rm(folder, { recursive: true, force: true }),
  })
}

/** Finds an installed Redis or Valkey. On Debian, root installs it first. Rejects, with what to do, if that fails. */
export async function findRedis(log?: (line: string) => void): Promise<string> {
  return await findOrInstall('Redis', locate, log)
}

async function locate(): Promise<string | undefined> {
  return (await findProgram('redis-server')) ?? (await findProgram('valkey-server'))
}

/** Rejects if nothing listens. Redis listens once it serves commands, because it has no data to load. */
async function canConnect(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } finally {
    socket.destroy()
  }
}
