import type { Agent } from '../src/agent/agent.ts'
import type { EvaluationCase } from './case-schema.ts'
import { type ObservedRun, runCase } from './run-case.ts'
import { type RunScore, scoreRun } from './score-run.ts'

export interface CaseResult {
  readonly entry: EvaluationCase
  readonly repeat: number
  readonly run: ObservedRun
  readonly score: RunScore
}

/** Executes every case `repeats` times, `concurrency` at once. Resolves to the results in the order of the cases. */
export async function evaluate({
  cases,
  agentFor,
  repeats = 1,
  concurrency = 1,
}: {
  readonly cases: readonly EvaluationCase[]
  readonly agentFor: (entry: EvaluationCase, repeat: number) => Agent
  readonly repeats?: number
  readonly concurrency?: number
}): Promise<CaseResult[]> {
  const jobs = cases.flatMap((entry) => Array.from({ length: repeats }, (_, index) => ({ entry, repeat: index + 1 })))
  const results: CaseResult[] = []
  const left = jobs.entries()
  const work = async (): Promise<void> => {
    for (const [index, { entry, repeat }] of left) {
      const run = await runCase(agentFor(entry, repeat), entry)
      results[index] = { entry, repeat, run, score: scoreRun(entry, run) }
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work))
  return results
}
