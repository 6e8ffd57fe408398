// `pnpm backup-trial`: see ../README.md
import { parseArgs } from 'node:util'
import { runBackupTrial } from './run-backup-trial.ts'

const print = (line: string): void => void process.stdout.write(`${line}\n`)
// The servers end with this process, and their folders are removed when it exits.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

try {
  const { values } = parseArgs({ options: { 'without-after-restore': { type: 'boolean', default: false } } })
  const violations: string[] = []
  for (const until of ['end of the backup', 'end of the WAL'] as const) {
    print(`Restore to the ${until}`)
    const runsAfterRestore = !values['without-after-restore']
    const report = await runBackupTrial({ until, runsAfterRestore, log: (line) => print(`  ${line}`) })
    print(`  ${report.violations.length} broken guarantees`)
    violations.push(...report.violations)
  }
  for (const violation of violations.slice(0, 100)) print(`VIOLATION: ${violation}`)
  process.exitCode = violations.length > 0 ? 1 : 0
} catch (error) {
  print(error instanceof Error ? (error.stack ?? error.message) : String(error))
  process.exitCode = 2
}
