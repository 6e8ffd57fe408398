import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { findProgram, isExecutable } from './find-program.ts'
import { findOrInstall } from './programs.ts'

export interface RabbitMqPrograms {
  server: string
  /** Erlang's name server, which each node registers with. */
  epmd: string
}

const execute = promisify(execFile)

/** Debian's `rabbitmq-server` in PATH insists on the user and folders of the system's node; this one does not. */
const DEBIAN_SERVER = '/usr/lib/rabbitmq/bin/rabbitmq-server'

/** Finds an installed RabbitMQ. On Debian, root installs it first. Rejects, with what to do, when there is none. */
export async function findRabbitMq(log?: (line: string) => void): Promise<RabbitMqPrograms> {
  return await findOrInstall('RabbitMQ', locate, log)
}

async function locate(): Promise<RabbitMqPrograms | undefined> {
  const starter = await findProgram('rabbitmq-server')
  if (!starter) return undefined
  const server = (await isExecutable(DEBIAN_SERVER)) ? DEBIAN_SERVER : starter
  const epmd = (await findProgram('epmd')) ?? (await askErlangForEpmd())
  return epmd ? { server, epmd } : undefined
}

async function askErlangForEpmd(): Promise<string | undefined> {
  const expression = 'io:format("~s/erts-~s/bin/epmd", [code:root_dir(), erlang:system_info(version)]), halt().'
  const answer = await execute('erl', ['-noshell', '-boot', 'start_clean', '-eval', expression]).catch(() => undefined)
  return answer?.stdout && existsSync(answer.stdout) ? answer.stdout : undefined
}
