// pnpm trial NAME [OPTIONS]: see README.md. The exit status is 0 if every promise was kept, 1 if one was broken, and 2
// if the command was wrong or the trial could not be executed.
import { type Trial, UsageError } from './shared/define-trial.ts'

const NAMES = ['attack', 'backup', 'bench', 'cells', 'chaos', 'cluster', 'image', 'packages', 'rollout', 'soak']
const MAX_LINES = 100

// Servers and programs end with this process; their folders are removed when it exits.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

const [name = '--help', ...args] = process.argv.slice(2)
try {
  process.exitCode = await run()
} catch (error) {
  const { message, stack } = error as Error
  process.stderr.write(`${error instanceof UsageError ? message : stack}\n`)
  process.exitCode = 2
}

async function run(): Promise<number> {
  if (['--help', '-h', 'help'].includes(name)) return print(await listTrials())
  if (!NAMES.includes(name)) throw new UsageError(`There is no trial "${name}". ${await listTrials()}`)
  const trial = await load(name)
  if (args.includes('--help') || args.includes('-h')) return print(trial.help(name))
  const violations = await trial.run(name, args)
  for (const violation of violations.slice(0, MAX_LINES)) print(`VIOLATION: ${violation}`)
  return violations.length > 0 ? 1 : 0
}

async function load(trial: string): Promise<Trial> {
  return ((await import(`./${trial}/trial.ts`)) as { trial: Trial }).trial
}

async function listTrials(): Promise<string> {
  const trials = await Promise.all(NAMES.map(load))
  const lines = trials.map(({ summary }, index) => `  ${(NAMES[index] ?? '').padEnd(9)} ${summary}`)
  return `pnpm trial NAME [OPTIONS], with --help for the options of one:\n${lines.join('\n')}`
}

function print(text: string): 0 {
  process.stdout.write(`${text}\n`)
  return 0
}
