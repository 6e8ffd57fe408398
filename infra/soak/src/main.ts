// `pnpm soak --hours 8`: see ../README.md
import { parseArgs } from 'node:util'
import { runSoak } from './run-soak.ts'

const print = (line: string): void => void process.stdout.write(`${line}\n`)
// The servers end with this process, and their folders are removed when it exits.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

try {
  const { values } = parseArgs({
    options: {
      hours: { type: 'string', default: '8' },
      rate: { type: 'string', default: '12' },
      'incident-seconds': { type: 'string', default: '90' },
      seed: { type: 'string' },
      output: { type: 'string', default: '.local/soak' },
    },
  })
  const wrong = await runSoak({
    hours: positive('hours', values.hours),
    rate: positive('rate', values.rate),
    incidentSeconds: positive('incident-seconds', values['incident-seconds']),
    seed: values.seed === undefined ? undefined : positive('seed', values.seed),
    output: values.output,
    log: print,
  })
  for (const line of wrong.slice(0, 100)) print(`WRONG: ${line}`)
  process.exitCode = wrong.length > 0 ? 1 : 0
} catch (error) {
  print(error instanceof Error ? (error.stack ?? error.message) : String(error))
  process.exitCode = 2
}

function positive(name: string, text: string): number {
  const value = Number(text)
  if (!(value > 0)) throw new Error(`--${name} must be a number above 0, for example: pnpm soak --hours 8 --rate 12`)
  return value
}
