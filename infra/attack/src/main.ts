// pnpm attack [NAME…]: see ../README.md
import { writeFile } from 'node:fs/promises'
import { Argument, Command, InvalidArgumentError } from 'commander'
import { startAttackTarget } from './attack-target.ts'
import { ATTACKS } from './attacks/index.ts'
import { isHurt, reasonsOf, toTable } from './report.ts'
import { type AttackReport, BAR, runAttack } from './run-attack.ts'

await new Command('attack')
  .description('Attacks the services, each in a child process, and measures what another organization notices.')
  .addArgument(new Argument('[names...]', 'the attacks; all by default').choices(ATTACKS.map(({ name }) => name)))
  .option('--seconds <count>', 'how long an attack goes on that repeats its requests', toSeconds, 5)
  .option('--json <file>', 'also write the reports to this file')
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
  .action(attack)
  .parseAsync()

async function attack(names: string[], { seconds, json }: { seconds: number; json?: string }): Promise<void> {
  const chosen = names.length === 0 ? ATTACKS : ATTACKS.filter(({ name }) => names.includes(name))
  const reports: AttackReport[] = []
  for (const entry of chosen) {
    logProgress(entry.name)
    // A new target for each attack, so that nothing of the previous one is still under way.
    const target = await startAttackTarget(entry.services)
    try {
      const report = await runAttack(target, entry, { seconds })
      reports.push(report)
      for (const reason of reasonsOf(report)) logProgress(`  ${reason}`)
    } finally {
      await target.close()
    }
  }
  process.stdout.write(`${toTable(reports)}\nOk is: ${BAR}.\n`)
  if (json !== undefined) await writeFile(json, `${JSON.stringify({ seconds, bar: BAR, reports }, null, 2)}\n`)
  if (reports.some(isHurt)) process.exitCode = 1
}

function toSeconds(text: string): number {
  if (!/^([1-9]|1[0-5])$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1 to 15.')
  return Number(text)
}

function logProgress(line: string): void {
  process.stderr.write(`${line}\n`)
}
