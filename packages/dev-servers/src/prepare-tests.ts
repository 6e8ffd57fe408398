// Run by `npm test` before everything else: says which programs the tests lack, and installs them where it can.
import { existsSync } from 'node:fs'
import { findChromiumFile } from './find-chromium.ts'
import { findProgram } from './find-program.ts'
import { APT_GET, installOnDebian } from './install-on-debian.ts'
import { planInstall } from './programs.ts'
import { findRedisFile } from './start-redis.ts'

const { env } = process
const missing = [
  ...(env['AMQP_URL'] || (await findProgram('rabbitmq-server')) ? [] : (['RabbitMQ'] as const)),
  ...((await findRedisFile()) ? [] : (['Redis'] as const)),
  ...(env['CHROMIUM_PATH'] || (await findChromiumFile()) ? [] : (['Chromium'] as const)),
]
const isRoot = process.getuid?.() === 0
const plan = planInstall(missing, { platform: process.platform, hasAptGet: existsSync(APT_GET), isRoot })
if (plan) {
  process.stdout.write(`${plan.message}\n`)
  const failure = plan.packages.length === 0 ? undefined : await installOnDebian(plan.packages)
  if (failure)
    process.stdout.write(
      `${failure}\nThe tests that need ${missing.join(', ')} will fail. Try it yourself: ${plan.command}\n`,
    )
}
