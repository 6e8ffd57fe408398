import { once } from 'node:events'
import { createServer } from 'node:net'
import got from 'got'
import { LOCAL_HOST, type LocalConfig } from './config.ts'
import { LocalStackError } from './local-stack-error.ts'

/** The port is looked at before anything is started: a taken port is the commonest trouble. */
export async function checkPort({ port }: LocalConfig, last: NodeJS.Dict<string>): Promise<void> {
  if (port === 0) return
  const server = createServer()
  try {
    server.listen(port, LOCAL_HOST)
    await once(server, 'listening')
    server.close()
    await once(server, 'close')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EACCES')
      throw new LocalStackError(`Port ${port} may not be used by this user: PORT=8090 npm start takes another one.`)
    if (await isRunning(last, port)) throw alreadyRunning(last)
    throw new LocalStackError(
      `Port ${port} is taken by another program: stop that one, or take another port: PORT=${port + 10} npm start`,
      { cause: error },
    )
  }
}

/** Whether the instance that wrote the settings answers, on this port where one is given. */
export async function isRunning(last: NodeJS.Dict<string>, port?: number): Promise<boolean> {
  const url = last['GATEWAY_URL']
  if (
    url === undefined ||
    (port !== undefined && new URL(url).port !== String(port)) ||
    !isAlive(Number(last['PID']))
  ) {
    return false
  }
  const answer = await got(`${url}/healthz`, { timeout: { request: 2_000 }, retry: { limit: 0 } }).catch(
    () => undefined,
  )
  return answer?.statusCode === 200
}

function isAlive(pid: number): boolean {
  try {
    return pid > 0 && process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Says where it runs and how to run a second one. */
export function alreadyRunning(last: NodeJS.Dict<string>): LocalStackError {
  return new LocalStackError(
    `It runs already, as process ${last['PID']}: ${last['GATEWAY_URL']}\nStop it there with Ctrl-C, or run a second one beside it: LOCAL_DIR=.local2 PORT=8090 npm start`,
  )
}
