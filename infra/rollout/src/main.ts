// pnpm rollout: see ../README.md
import Table from 'cli-table3'
import { Command, InvalidArgumentError } from 'commander'
import { runRollout, SERVICES } from './run-rollout.ts'

await new Command('rollout')
  .description('Restarts two processes of each service in turn behind HAProxy, under load, and counts what that broke.')
  .option('--delay <seconds>', 'SHUTDOWN_DELAY_SECONDS of the services', toSeconds, 7)
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
  .action(rollout)
  .parseAsync()

async function rollout({ delay }: { delay: number }): Promise<void> {
  const report = await runRollout({ delaySeconds: delay, services: SERVICES, log })
  const table = new Table({
    head: ['requests during the restarts', 'sent', 'failed', 'for example'],
    style: { head: [], border: [] },
  })
  for (const { name, requests, failures } of report.loads) {
    table.push([name, requests, failures.length, failures[0]?.slice(0, 60) ?? ''])
  }
  table.push([
    'starts answered 202 (failed: no success, or not exactly one payload)',
    report.accepted,
    report.lost.length,
    report.lost[0] ?? '',
  ])
  const peaks = [...report.peakMiB].map(([service, mib]) => `${service} ${mib.toFixed(0)} MiB`).join(', ')
  process.stdout.write(
    `${table.toString()}\n${report.restarts} restarts in ${report.seconds} s; peak memory: ${peaks}\n`,
  )
  if (report.lost.length > 0 || report.loads.some(({ failures }) => failures.length > 0)) {
    log(`The proxy's log:\n${report.proxyLog}`)
    process.exitCode = 1
  }
}

function log(line: string): void {
  process.stderr.write(`${line}\n`)
}

function toSeconds(text: string): number {
  if (!/^\d{1,2}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 0 to 99.')
  return Number(text)
}
