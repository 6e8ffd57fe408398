import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { access, constants, rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { readConfig } from './config.ts'

/** Where the programs of an installed RabbitMQ are. */
export interface RabbitMqInstallation {
  server: string
  epmd: string
}

const execute = promisify(execFile)

const usualFolders = ['/usr/sbin', '/usr/local/sbin', '/opt/homebrew/sbin', '/usr/local/opt/rabbitmq/sbin', '/usr/bin']

/** Debian's own starter insists on the user and folders of the system's node; the one behind it takes what it is told. */
const debianServer = '/usr/lib/rabbitmq/bin/rabbitmq-server'

/**
 * Finds an installed RabbitMQ, or on Debian as root installs it. Rejects with what to do otherwise: tests that need a
 * broker never skip.
 */
export async function findRabbitMq(say: (line: string) => void): Promise<RabbitMqInstallation> {
  const found = await locate()
  if (found) return found
  const failure = await installOnDebian(say)
  const installed = await locate()
  if (installed) return installed
  throw new Error(
    `These tests need RabbitMQ and there is none here${failure ? ` (${failure})` : ''}: run ` +
      '"docker compose up -d rabbitmq" and set AMQP_URL=amqp://guest:guest@127.0.0.1:5672, or install rabbitmq-server',
  )
}

async function locate(): Promise<RabbitMqInstallation | undefined> {
  const starter = await findProgram('rabbitmq-server')
  if (!starter) return undefined
  const server = (await isExecutable(debianServer)) ? debianServer : starter
  const epmd = (await findProgram('epmd')) ?? (await askErlangForEpmd())
  return epmd ? { server, epmd } : undefined
}

async function findProgram(name: string): Promise<string | undefined> {
  const folders = [...readConfig().path.split(delimiter), ...usualFolders]
  for (const folder of folders) {
    const file = join(folder, name)
    if (await isExecutable(file)) return file
  }
  return undefined
}

async function isExecutable(file: string): Promise<boolean> {
  return await access(file, constants.X_OK).then(
    () => true,
    () => false,
  )
}

async function askErlangForEpmd(): Promise<string | undefined> {
  const question = 'io:format("~s/erts-~s/bin/epmd", [code:root_dir(), erlang:system_info(version)]), halt().'
  const answer = await execute('erl', ['-noshell', '-boot', 'start_clean', '-eval', question]).catch(() => undefined)
  return answer?.stdout && existsSync(answer.stdout) ? answer.stdout : undefined
}

/** Resolves to why it failed or was not tried; undefined when it went well. */
async function installOnDebian(say: (line: string) => void): Promise<string | undefined> {
  if (process.platform !== 'linux' || !existsSync('/usr/bin/apt-get')) return undefined
  if (process.getuid?.() !== 0) return 'only root can install it'
  say('Installing rabbitmq-server with apt-get, once …')
  const policy = '/usr/sbin/policy-rc.d'
  // The package starts a node of the system when it is installed; with this policy it does not.
  const made = await writeFile(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755, flag: 'wx' }).then(
    () => true,
    () => false,
  )
  const env = {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    DEBIAN_FRONTEND: 'noninteractive',
  }
  const aptGet = async (...args: string[]) =>
    await execute('apt-get', ['-q', '-o', 'DPkg::Lock::Timeout=120', ...args], { env, maxBuffer: 1 << 26 })
  try {
    await aptGet('update')
    await aptGet('install', '--yes', '--no-install-recommends', 'rabbitmq-server')
    return undefined
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string }
    return `apt-get failed: ${stderr.trim().split('\n').at(-1) || message}`
  } finally {
    if (made) await rm(policy, { force: true })
  }
}
