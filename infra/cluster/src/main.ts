// `pnpm cluster-trial [broker|database]`: see ../README.md
import { tryBrokerCluster, tryDatabaseFailover } from './run-cluster-trial.ts'

const print = (line: string): void => void process.stdout.write(`${line}\n`)
// The servers end with this process; the network and the folders are removed when it exits.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

const TRIALS = { broker: tryBrokerCluster, database: tryDatabaseFailover }

try {
  const names = process.argv.slice(2)
  const unknown = names.find((name) => !Object.hasOwn(TRIALS, name))
  if (unknown !== undefined) throw new Error(`There is no trial ${unknown}: use broker or database, or none for both.`)
  let count = 0
  for (const [name, run] of Object.entries(TRIALS)) {
    if (names.length > 0 && !names.includes(name)) continue
    print(name)
    const violations = await run((line) => print(`  ${line}`))
    print(`  ${violations.length} broken guarantees`)
    for (const violation of violations.slice(0, 50)) print(`  VIOLATION: ${violation}`)
    count += violations.length
  }
  process.exitCode = count > 0 ? 1 : 0
} catch (error) {
  print(error instanceof Error ? (error.stack ?? error.message) : String(error))
  process.exitCode = 2
}
