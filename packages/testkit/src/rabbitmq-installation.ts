import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { findProgram, installOnDebian, isExecutable } from './debian-package.ts'

/** Where the programs of an installed RabbitMQ are. */
export interface RabbitMqInstallation {
  server: string
  epmd: string
}

const execute = promisify(execFile)

/** Debian's own starter insists on the user and folders of the system's node; the one behind it takes what it is told. */
const debianServer = '/usr/lib/rabbitmq/bin/rabbitmq-server'

/**
 * Finds an installed RabbitMQ, or on Debian as root installs it. Rejects with what to do otherwise: tests that need a
 * broker never skip.
 */
export async function findRabbitMq(say: (line: string) => void): Promise<RabbitMqInstallation> {
  const found = await locate()
  if (found) return found
  const failure = await installOnDebian('rabbitmq-server', say)
  const installed = await locate()
  if (installed) return installed
  throw new Error(
    `These tests need RabbitMQ and there is none here${failure ? ` (${failure})` : ''}: run ` +
      '"docker compose up -d rabbitmq" and set AMQP_URL as README.md says under "Working on it", or install rabbitmq-server',
  )
}

async function locate(): Promise<RabbitMqInstallation | undefined> {
  const starter = await findProgram('rabbitmq-server')
  if (!starter) return undefined
  const server = (await isExecutable(debianServer)) ? debianServer : starter
  const epmd = (await findProgram('epmd')) ?? (await askErlangForEpmd())
  return epmd ? { server, epmd } : undefined
}

async function askErlangForEpmd(): Promise<string | undefined> {
  const question = 'io:format("~s/erts-~s/bin/epmd", [code:root_dir(), erlang:system_info(version)]), halt().'
  const answer = await execute('erl', ['-noshell', '-boot', 'start_clean', '-eval', question]).catch(() => undefined)
  return answer?.stdout && existsSync(answer.stdout) ? answer.stdout : undefined
}
