// Run by `npm test` before everything else: says which programs the tests lack, and installs them where it can.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { findChromium } from './find-chromium.ts'
import { findRabbitMq } from './find-rabbitmq.ts'
import { APT_GET } from './install-on-debian.ts'
import { findOrInstall } from './programs.ts'
import { findRedis } from './start-redis.ts'

const print = (line: string): void => void process.stdout.write(`${line}\n`)
const finders = [
  ...(process.env['AMQP_URL'] ? [] : [findRabbitMq]),
  findRedis,
  findChromium,
  // Only where it can be installed: without it, the tests of the Python client say that they were not run.
  ...(process.getuid?.() === 0 && existsSync(APT_GET) ? [findHttpx] : []),
]
for (const find of finders) {
  await find(print).catch(({ message }: Error) => print(`${message}\nThe tests that need it will fail.`))
}

/** Reports whether Debian's Python has httpx, if it is installed at all. */
async function findHttpx(log: (line: string) => void): Promise<boolean> {
  const python = '/usr/bin/python3'
  const hasHttpx = () => !existsSync(python) || spawnSync(python, ['-c', 'import httpx']).status === 0
  return await findOrInstall('httpx', async () => hasHttpx() || undefined, log)
}
