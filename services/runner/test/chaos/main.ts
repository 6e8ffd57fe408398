// `pnpm chaos --minutes 30 --seed N`: kills random parts of the service under load for that time, and checks that the
// guarantees of every start were kept.
import { writeFile } from 'node:fs/promises'
import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { runChaos } from './run-chaos.ts'

const print = (line: string): void => void process.stdout.write(`${line}\n`)

try {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '5' },
      seed: { type: 'string', default: String(randomInt(2 ** 31)) },
      callers: { type: 'string', default: '8' },
      output: { type: 'string' },
    },
  })
  const report = await runChaos({
    seed: positive('seed', values.seed),
    seconds: positive('minutes', values.minutes) * 60,
    callers: positive('callers', values.callers),
    log: print,
  })
  if (values.output !== undefined) await writeFile(values.output, report.output)
  for (const violation of report.violations) print(`VIOLATION: ${violation}`)
  process.exitCode = report.violations.length > 0 ? 1 : 0
} catch (error) {
  print(error instanceof Error ? error.message : String(error))
  process.exitCode = 2
}

function positive(name: string, text: string): number {
  const value = Number(text)
  if (!(value > 0)) throw new Error(`--${name} must be a number above 0, for example: pnpm chaos --minutes 30 --seed 7`)
  return value
}
