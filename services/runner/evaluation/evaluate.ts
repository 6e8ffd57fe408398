import type { JournalStep } from '@workflow-service/contract'
import type { Agent } from '../src/agent/agent.ts'
import type { EvaluationCase } from './case-schema.ts'
import { type ObservedRun, runCase } from './run-case.ts'
import { type RunScore, scoreRun } from './score-run.ts'

export interface CaseResult {
  readonly entry: EvaluationCase
  readonly repeat: number
  readonly run: ObservedRun
  readonly score: RunScore
  /** What a model used; zeros for the built-in agent. */
  readonly model: { readonly turns: number; readonly inputTokens: number; readonly outputTokens: number }
}

export interface EvaluateOptions {
  readonly cases: readonly EvaluationCase[]
  /** Creates the agent that executes the run of a case. */
  readonly agentFor: (entry: EvaluationCase, repeat: number) => Agent | Promise<Agent>
  readonly repeats?: number
  /** Runs at once. */
  readonly concurrency?: number
}

/** Executes every case `repeats` times, and resolves to the results in the order of the cases. */
export async function evaluate(options: EvaluateOptions): Promise<CaseResult[]> {
  const { cases, agentFor, repeats = 1, concurrency = 1 } = options
  const jobs = cases.flatMap((entry) => Array.from({ length: repeats }, (_, index) => ({ entry, repeat: index + 1 })))
  const results: CaseResult[] = []
  let next = 0
  const work = async (): Promise<void> => {
    while (next < jobs.length) {
      const index = next++
      const { entry, repeat } = jobs[index]!
      const run = await runCase(await agentFor(entry, repeat), entry, repeat)
      results[index] = { entry, repeat, run, score: scoreRun(entry, run), model: countModelUse(run.steps) }
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work))
  return results
}

function countModelUse(steps: readonly JournalStep[]): CaseResult['model'] {
  const answers = steps.flatMap((step) => (step.kind === 'model_answer' ? [step.data] : []))
  return {
    turns: answers.length,
    inputTokens: answers.reduce((sum, answer) => sum + (answer.input_tokens ?? 0), 0),
    outputTokens: answers.reduce((sum, answer) => sum + (answer.output_tokens ?? 0), 0),
  }
}
