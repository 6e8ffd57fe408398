/**
 * The runner turns accepted starts into runs: it leases sessions, executes their starts in order, records every step in
 * a journal, and starts auto-runs. The agent decides what a run does; the dispatcher sends payloads.
 */
export { readRunnerConfig, type RunnerConfig, RunnerSettings } from './config.ts'
export { type RunnerOverrides, type RunnerTiming, startRunner } from './start-runner.ts'
