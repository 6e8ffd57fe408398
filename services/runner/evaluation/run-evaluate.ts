// pnpm evaluate: see ../README.md, "Evaluation"
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { readSettings, SettingsError } from '@workflow-service/service-kit'
import {
  type AgentConfig,
  agentSettings,
  agentSettingsParsers,
  agentSettingsRules,
  toAgentConfig,
} from '../src/agent/agent-settings.ts'
import { createAgent } from '../src/agent/create-agent.ts'
import { modelBaseUrl } from '../src/agent/model/providers.ts'
import { evaluate } from './evaluate.ts'
import { CaseError, readCases } from './read-cases.ts'
import { AnswerRecorder } from './record-answers.ts'
import { formatReport, isAcceptable, type ModelPrice, toJsonReport } from './report.ts'
import { Type } from '@workflow-service/contract/type'

const USAGE = `Usage: pnpm evaluate [options]

Executes cases with an agent and counts what it did right. Exits with 0 if every run was right,
or a refusal of the built-in agent where the case needs a model; with 1 if not; with 2 for wrong
usage or a case file that is not valid.

  --agent SPEC          as AGENT_MODEL; builtin by default. The other AGENT_… settings apply.
  --cases GLOB          case files; all of services/runner/evaluation/cases by default
  --repeat N            runs of each case, 1 to 100; 1 by default
  --json FILE           also writes the report as JSON
  --record FOLDER       answers requests to the model from this folder; keeps new answers in it
  --replay              with --record: never sends a request to the provider
  --price INPUT:OUTPUT  dollars for a million tokens, such as 3:15
  --list                prints the ids of the runs that are not right, with their mistakes
`

/** Runs of a model at once. */
const MODEL_CONCURRENCY = 4

/** Wrong usage; the message says what to change. */
class UsageError extends Error {}

const AgentSettings = Type.Object(agentSettings, agentSettingsRules)

/** Where the command writes. */
export interface EvaluateOutput {
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
    if (!(error instanceof UsageError || error instanceof CaseError || error instanceof SettingsError)) throw error
    output.stderr(`${error.message}\n`)
    return 2
  }
}

async function execute(
  options: ReturnType<typeof parse>,
  env: NodeJS.ProcessEnv,
  { stdout, stderr }: EvaluateOutput,
): Promise<0 | 1> {
  if (options.help) {
    stdout(USAGE)
    return 0
  }
  const repeats = toRepeats(options.repeat)
  const price = toPrice(options.price)
  if (options.replay && options.record === undefined) throw new UsageError('--replay needs --record FOLDER')
  const cases = readCases(options.cases)
  const settings = readSettings(
    AgentSettings,
    { ...env, AGENT_MODEL: options.agent },
    { parsers: agentSettingsParsers },
  )
  const config = toAgentConfig(settings)
  const recorder = createRecorder(config, options)
  const results = await evaluate({
    cases,
    repeats,
    concurrency: config.models.size === 0 ? 1 : MODEL_CONCURRENCY,
    agentFor: (entry, repeat) => createAgent(config, recorder && { fetch: recorder.fetchFor(`${entry.id}-${repeat}`) }),
  })
  stdout(`${formatReport(results, options.agent, price)}\n`)
  if (options.list) {
    for (const { entry, score } of results.filter((result) => !isAcceptable(result, options.agent))) {
      const mistakes = score.mistakes.map(({ kind, text }) => `  ${kind}: ${text}\n`)
      stdout(`\n${entry.id}\n${mistakes.join('')}`)
    }
  }
  if (recorder) stderr(`${recorder.replayed} answers replayed, ${recorder.requested} requested\n`)
  if (options.json !== undefined) {
    writeFileSync(options.json, `${JSON.stringify(toJsonReport(results, options.agent, price), null, 2)}\n`)
  }
  return results.every((result) => isAcceptable(result, options.agent)) ? 0 : 1
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
        price: { type: 'string' },
        list: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    })
    return values
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`)
  }
}

function toRepeats(text: string): number {
  const repeats = Number(text)
  if (!Number.isInteger(repeats) || repeats < 1 || repeats > 100) {
    throw new UsageError('--repeat must be a whole number from 1 to 100')
  }
  return repeats
}

function toPrice(text: string | undefined): ModelPrice | undefined {
  if (text === undefined) return undefined
  const match = /^(\d+(?:\.\d+)?):(\d+(?:\.\d+)?)$/u.exec(text)
  if (!match) throw new UsageError('--price must be INPUT:OUTPUT in dollars for a million tokens, such as 3:15')
  return { input: Number(match[1]), output: Number(match[2]) }
}

function createRecorder(
  config: AgentConfig,
  { record, replay }: { record?: string | undefined; replay: boolean },
): AnswerRecorder | undefined {
  if (record === undefined) return undefined
  const model = config.models.get(config.defaultModel)
  if (!model) throw new UsageError('--record is for models; the built-in agent asks none')
  return new AnswerRecorder({ folder: record, baseUrl: modelBaseUrl(model), isReplay: replay })
}

if (import.meta.main) {
  process.exitCode = await runEvaluate(process.argv.slice(2), process.env, {
    stdout: (text) => void process.stdout.write(text),
    stderr: (text) => void process.stderr.write(text),
  })
}
