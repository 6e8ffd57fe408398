import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { freePort, isAlive, listenError } from '@workflow-service/dev-servers'
import got from 'got'
import { startCommand } from './commands.ts'
import { LOCAL_HOST, type LocalConfig } from './config.ts'
import { LocalStackError } from './local-stack-error.ts'

/** Checks that the port is free before anything is started or written. @throws LocalStackError */
export async function checkPort({ port, localDir }: LocalConfig, savedSettings: NodeJS.Dict<string>): Promise<void> {
  const error = await listenError(port)
  if (error && (await isRunning(savedSettings, port))) throw alreadyRunningError(localDir, savedSettings)
  if (error) throw portError(localDir, 'PORT', port, error)
}

const DEFAULT_APP_PORT = 8083

/**
 * Chooses the port of the application: the configured one, else that of the last start, 8083, or any free one. The
 * application has to know it before it listens: it compares the origin of requests with its own address. The returned
 * server listens there until then, so that no other start, with a folder of its own, takes the port.
 * @throws LocalStackError if the configured one is taken.
 */
export async function holdAppPort(
  { appPort, localDir }: LocalConfig,
  savedSettings: NodeJS.Dict<string>,
): Promise<Server> {
  if (appPort) {
    return await hold(appPort).catch((error: NodeJS.ErrnoException) => {
      throw portError(localDir, 'APP_PORT', appPort, error)
    })
  }
  // Not the port of APP_URL, which may be that of a proxy.
  const lastPort = Number(savedSettings['APP_PORT'] ?? DEFAULT_APP_PORT)
  for (const port of appPort === 0 ? [] : [lastPort, DEFAULT_APP_PORT]) {
    const held = await hold(port).catch(() => undefined)
    if (held) return held
  }
  return await hold(await freePort())
}

async function hold(port: number): Promise<Server> {
  const server = createServer((socket) => socket.destroy()).listen(port, LOCAL_HOST)
  await once(server, 'listening')
  return server
}

function portError(localDir: string, setting: string, port: number, cause: NodeJS.ErrnoException): LocalStackError {
  const isForbidden = cause.code === 'EACCES'
  const command = startCommand(localDir, { [setting]: isForbidden ? '8090' : portBeside(port) })
  const message = isForbidden
    ? `This user may not listen on port ${port}. Use another one: ${command}`
    : `Another program uses port ${port}. Stop that program, or use another port: ${command}`
  return new LocalStackError(message, { cause })
}

/** Returns another port to try. */
function portBeside(port: number): string {
  return String(port < 1024 || port > 65_000 ? 8090 : port + 10)
}

/** Whether the local stack that saved these settings still answers; with `port`, only if it listens on that port. */
export async function isRunning(savedSettings: NodeJS.Dict<string>, port?: number): Promise<boolean> {
  const url = savedSettings['GATEWAY_URL']
  if (url === undefined || !isAlive(Number(savedSettings['PID']))) return false
  if (port !== undefined && new URL(url).port !== String(port)) return false
  const response = await got(`${url}/healthz`, { timeout: { request: 2_000 }, retry: { limit: 0 } }).catch(
    () => undefined,
  )
  return response?.statusCode === 200
}

/** The error that says where the other instance runs and how to run a second one. */
export function alreadyRunningError(localDir: string, savedSettings: NodeJS.Dict<string>): LocalStackError {
  const { PID, GATEWAY_URL = '' } = savedSettings
  const beside = startCommand(`${localDir}2`, { PORT: portBeside(Number(URL.parse(GATEWAY_URL)?.port)) })
  return new LocalStackError(
    `npm start already runs in this folder: process ${PID}, ${GATEWAY_URL}\n` +
      `Stop it with Ctrl-C in its terminal, or run a second one beside it: ${beside}`,
  )
}
