// pnpm evaluate: see ../README.md, "Evaluation"
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { SettingsError } from '@workflow-service/service-kit'
import { readAgentConfig } from '../src/agent/agent-config.ts'
import { type AgentConfig, BUILTIN } from '../src/agent/agent-settings.ts'
import { createAgent } from '../src/agent/create-agent.ts'
import { evaluate } from './evaluate.ts'
import { readCases, UsageError } from './read-cases.ts'
import { createRecorder } from './record-answers.ts'
import { formatReport, isAcceptable, toJsonReport } from './report.ts'

const USAGE = `Usage: pnpm evaluate [options]

Executes cases with an agent and counts what it did right. Exits with 0 if every run was right,
or a refusal of the built-in agent where the case needs a model; with 1 if not; with 2 for wrong
usage or a case file that is not valid.

  --agent SPEC     as AGENT_MODEL, or a name in AGENT_MODELS; builtin by default.
                   The other AGENT_… settings apply
  --cases GLOB     case files; all of services/runner/evaluation/cases by default
  --repeat N       runs of each case, 1 to 100; 1 by default
  --json FILE      also writes the report as JSON
  --record FOLDER  answers requests to the model from this folder; keeps new answers in it
  --replay         with --record: never sends a request to the provider
`

const MODEL_CONCURRENCY = 4

interface EvaluateOutput {
  readonly stdout: (text: string) => void
  readonly stderr: (text: string) => void
}

/** Executes `pnpm evaluate` and resolves to its exit status. */
export async function runEvaluate(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  output: EvaluateOutput,
): Promise<0 | 1 | 2> {
  try {
    return await execute(parse(args), env, output)
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof SettingsError)) throw error
    output.stderr(`${error.message}\n`)
    return 2
  }
}

async function execute(
  { help, agent, cases, repeat, json, record, replay }: ReturnType<typeof parse>,
  env: NodeJS.ProcessEnv,
  { stdout, stderr }: EvaluateOutput,
): Promise<0 | 1> {
  if (help) {
    stdout(USAGE)
    return 0
  }
  const repeats = Number(repeat)
  if (!Number.isInteger(repeats) || repeats < 1 || repeats > 100) {
    throw new UsageError('--repeat must be a whole number from 1 to 100')
  }
  if (replay && record === undefined) throw new UsageError('--replay needs --record FOLDER')
  const config = readConfig(agent, env)
  const recorder = record === undefined ? undefined : assertUsable('--record', () => createRecorder(record, replay))
  // Before the runs, which may cost money. Leaves an earlier report as it is until there is a new one.
  if (json !== undefined) assertUsable('--json', () => writeFileSync(json, '', { flag: 'a' }))
  const results = await evaluate({
    cases: readCases(cases),
    repeats,
    concurrency: config.models.size === 0 ? 1 : MODEL_CONCURRENCY,
    agentFor: (entry, each) => createAgent(config, recorder && { fetch: recorder.fetchFor(`${entry.id}-${each}`) }),
  })
  stdout(`${formatReport(results, agent)}\n`)
  if (recorder) stderr(`${recorder.counts.replayed} answers replayed, ${recorder.counts.requested} requested\n`)
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(toJsonReport(results, agent), null, 2)}\n`)
  return results.every((result) => isAcceptable(result, agent)) ? 0 : 1
}

/** @throws UsageError if the file or folder of an option cannot be written. */
function assertUsable<Result>(option: string, open: () => Result): Result {
  try {
    return open()
  } catch (error) {
    throw new UsageError(`${option}: ${(error as Error).message}`)
  }
}

function parse(args: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        agent: { type: 'string', default: 'builtin' },
        cases: { type: 'string', default: join(import.meta.dirname, 'cases/**/*.json') },
        repeat: { type: 'string', default: '1' },
        json: { type: 'string' },
        record: { type: 'string' },
        replay: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    return values
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`)
  }
}

function readConfig(agent: string, env: NodeJS.ProcessEnv): AgentConfig {
  const given = env['AGENT_MODELS'] ? env : { ...env, AGENT_MODEL: agent }
  const config = readAgentConfig(given)
  if (agent !== BUILTIN && !config.models.has(agent)) {
    throw new UsageError(`--agent must be ${BUILTIN} or one of AGENT_MODELS: ${[...config.models.keys()].join(', ')}`)
  }
  // The answers of a fallback would count for the agent.
  const models = [...config.models].map(([name, model]) => [name, { ...model, fallback: null }] as const)
  return { models: new Map(models), defaultModel: agent }
}

if (import.meta.main) {
  process.exitCode = await runEvaluate(process.argv.slice(2), process.env, {
    stdout: (text) => void process.stdout.write(text),
    stderr: (text) => void process.stderr.write(text),
  })
}
