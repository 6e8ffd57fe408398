// Run by `npm test` before everything else: says which programs the tests lack, and installs them where it can.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { findChromiumFile } from './find-chromium.ts'
import { findProgram } from './find-program.ts'
import { APT_GET, installOnDebian } from './install-on-debian.ts'
import { planInstall } from './programs.ts'
import { findRedisFile } from './start-redis.ts'

const { env } = process
const isRoot = process.getuid?.() === 0
const missing = [
  ...(env['AMQP_URL'] || (await findProgram('rabbitmq-server')) ? [] : (['RabbitMQ'] as const)),
  ...((await findRedisFile()) ? [] : (['Redis'] as const)),
  ...(env['CHROMIUM_PATH'] || (await findChromiumFile()) ? [] : (['Chromium'] as const)),
  // Only where it can be installed: without it, the tests of the Python client say that they were not run.
  ...(isRoot && existsSync(APT_GET) && lacksHttpx() ? (['httpx'] as const) : []),
]
const plan = planInstall(missing, { platform: process.platform, hasAptGet: existsSync(APT_GET), isRoot })
if (plan) {
  process.stdout.write(`${plan.message}\n`)
  const failure = plan.packages.length === 0 ? undefined : await installOnDebian(plan.packages)
  if (failure)
    process.stdout.write(
      `${failure}\nThe tests that need ${missing.join(', ')} will fail. Try it yourself: ${plan.command}\n`,
    )
}

/** Whether Debian's Python is installed without httpx. */
function lacksHttpx(): boolean {
  return existsSync('/usr/bin/python3') && spawnSync('/usr/bin/python3', ['-c', 'import httpx']).status !== 0
}
