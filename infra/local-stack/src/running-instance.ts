import { once } from 'node:events'
import { createServer } from 'node:net'
import got from 'got'
import { LOCAL_HOST, type LocalConfig } from './config.ts'
import { LocalStackError } from './local-stack-error.ts'

/** Checks that the port is free before anything is started or written. @throws LocalStackError */
export async function checkPort({ port }: LocalConfig, savedSettings: NodeJS.Dict<string>): Promise<void> {
  if (port === 0) return
  const server = createServer()
  try {
    server.listen(port, LOCAL_HOST)
    await once(server, 'listening')
    server.close()
    await once(server, 'close')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES') {
      throw new LocalStackError(`This user may not listen on port ${port}. Use another one: PORT=8090 npm start`)
    }
    if (await isRunning(savedSettings, port)) throw alreadyRunningError(savedSettings)
    const otherPort = port > 65_000 ? 8090 : port + 10
    throw new LocalStackError(
      `Another program uses port ${port}. Stop that program, or use another port: PORT=${otherPort} npm start`,
      { cause: error },
    )
  }
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

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** The error that says where the other instance runs and how to run a second one. */
export function alreadyRunningError(savedSettings: NodeJS.Dict<string>): LocalStackError {
  return new LocalStackError(
    `npm start already runs in this folder: process ${savedSettings['PID']}, ${savedSettings['GATEWAY_URL']}\n` +
      'Stop it with Ctrl-C in its terminal, or run a second one beside it: LOCAL_DIR=.local2 PORT=8090 npm start',
  )
}
